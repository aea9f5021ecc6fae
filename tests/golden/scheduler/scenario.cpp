#include "tests/golden/scheduler/scenario.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "coordinator/core/core.h"
#include "tests/support/coordinator/scheduler_text.h"

namespace layerfarm::test {
namespace {

using namespace coordinator::core;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::uint32_t number(const std::string& text) {
  const bool prefixed = !text.empty() && (text[0] == 'W' || text[0] == 'a');
  return static_cast<std::uint32_t>(std::stoul(prefixed ? text.substr(1) : text));
}

base::Duration duration(const std::string& text) {
  std::size_t used = 0;
  const double value = std::stod(text, &used);
  const std::string unit = text.substr(used);
  const double seconds = unit == "ms" ? value / 1000 : unit == "m" ? value * 60 : value;
  return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

/// key=value words of a command; others are flags with an empty value.
std::map<std::string, std::string> options_of(const std::vector<std::string>& words,
                                              std::size_t from) {
  std::map<std::string, std::string> options;
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const bool flag = equals == std::string::npos;
    options[words[i].substr(0, equals)] = flag ? "" : words[i].substr(equals + 1);
  }
  return options;
}

domain::Stage stage_from(const std::string& name) {
  for (int i = 1; i <= 6; ++i) {
    const auto stage = static_cast<domain::Stage>(i);
    if (domain::stage_name(stage) == name) return stage;
  }
  throw std::runtime_error("no such stage: " + name);
}

domain::Ending ending_from(const std::string& name) {
  for (int i = 1; i <= 9; ++i) {
    const auto ending = static_cast<domain::Ending>(i);
    std::string word(domain::ending_name(ending));
    std::replace(word.begin(), word.end(), ' ', '-');
    if (word == name) return ending;
  }
  throw std::runtime_error("no such ending: " + name);
}

class Scenario {
 public:
  /// One block of commands; its output.
  std::string run(const std::vector<std::string>& lines) {
    out_.clear();
    for (const std::string& line : lines) {
      const std::vector<std::string> words = words_of(line);
      if (words.empty() || words[0][0] == '#') continue;
      try {
        command(words);
      } catch (const std::exception& error) {
        out_ += "bad command: " + line + ": " + error.what() + "\n";
      }
    }
    add_jobs();
    return out_;
  }

 private:
  void command(const std::vector<std::string>& words) {
    const std::string& verb = words[0];
    if (verb == "job") {
      job(words);
      return;
    }
    add_jobs();
    if (verb == "policy") {
      policy(options_of(words, 1));
    } else if (verb == "join") {
      join(words);
    } else if (verb == "explain") {
      out_ += words.at(1) + ": " + text_of(core_.explain(named(words.at(1))), names_) + "\n";
    } else if (verb == "wait") {
      now_ += duration(words.at(1));
    } else if (verb == "tick") {
      if (words.size() > 1) now_ += duration(words[1]);
      step(Tick{});
    } else if (verb == "run") {
      run_for(duration(words.at(1)));
    } else {
      simple(verb, words);
    }
  }

  void simple(const std::string& verb, const std::vector<std::string>& words) {
    const auto arg = [&](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
    if (verb == "leave") {
      const Departure how = arg(2) == "died"   ? Departure::Died
                            : arg(2) == "lost" ? Departure::Lost
                                               : Departure::Planned;
      step(WorkerLeft{WorkerId{number(arg(1))}, how});
    } else if (verb == "expect") {
      step(WorkersExpected{number(arg(1))});
    } else if (verb == "start") {
      AttemptsStarted event{WorkerId{number(arg(1))}, {}};
      for (std::size_t i = 2; i < words.size(); ++i) event.attempts.emplace_back(number(words[i]));
      step(event);
    } else if (verb == "end") {
      end(words);
    } else if (verb == "heard") {
      const bool named = arg(2).starts_with('a');
      step(WorkerHeard{WorkerId{number(arg(1))}, arg(2) == "idle",
                       AttemptId{named ? number(arg(2)) : 0}});
    } else if (verb == "drop") {
      step(JobsDropped{jobs_named(words)});
    } else if (verb == "want") {
      step(JobsWanted{jobs_named(words)});
    } else if (verb == "group") {
      step(GroupsAdded{{{GroupId{static_cast<std::uint16_t>(number(arg(1)))},
                         static_cast<std::uint16_t>(number(arg(2)))}}});
    } else if (verb == "pause") {
      step(LeasingPaused{true});
    } else if (verb == "resume") {
      step(LeasingPaused{false});
    } else if (verb == "stop") {
      step(Stop{arg(1) == "now"});
    } else {
      throw std::runtime_error("no such command");
    }
  }

  void policy(const std::map<std::string, std::string>& options) {
    CorePolicy policy;
    policy.local = false;
    policy.wait_workers = std::chrono::minutes(10);
    for (const auto& [key, value] : options) {
      if (key == "local")
        policy.local = true;
      else if (key == "wait_workers")
        policy.wait_workers = duration(value);
      else if (key == "lease_target")
        policy.lease_target = duration(value);
      else if (key == "patience")
        policy.exclusive_patience = duration(value);
      else if (key == "most")
        policy.max_jobs_per_lease = number(value);
      else if (key == "first")
        policy.first_attempt = number(value);
      else
        throw std::runtime_error("no such policy: " + key);
    }
    core_ = Core(policy);
    ids_.clear();
    job_names_.clear();
    now_ = base::Time{0};
  }

  void job(const std::vector<std::string>& words) {
    JobSpec spec;
    spec.id = JobId{static_cast<std::uint32_t>(job_names_.size())};
    spec.stage = stage_from(words.at(2));
    for (const auto& [key, value] : options_of(words, 3)) {
      if (key == "class")
        spec.ability = ClassId{static_cast<std::uint16_t>(number(value))};
      else if (key == "group")
        spec.group = GroupId{static_cast<std::uint16_t>(number(value))};
      else if (key == "cost")
        spec.cost_us = number(value) * 1000;
      else if (key == "limit")
        spec.limit_ms = number(value);
      else if (key == "priority")
        spec.priority = static_cast<std::int16_t>(std::stoi(value));
      else if (key == "known")
        spec.known = value == "failed" ? Known::Failed : Known::Succeeded;
      else if (key == "speculative")
        spec.speculative = true;
      else if (key == "exclusive")
        spec.exclusive = true;
      else if (key == "needs")
        for (const auto& need : split(value, ',')) spec.needs.push_back(named(need));
      else
        throw std::runtime_error("no such key: " + key);
    }
    ids_[words.at(1)] = spec.id;
    job_names_.push_back(words.at(1));
    added_.push_back(spec);
  }

  void add_jobs() {
    if (added_.empty()) return;
    step(JobsAdded{std::exchange(added_, {})});
  }

  void join(const std::vector<std::string>& words) {
    WorkerJoined event{.worker = WorkerId{number(words.at(1))}, .host = HostId{0}, .abilities = {}};
    event.leases = 1;
    for (const auto& [key, value] : options_of(words, 2)) {
      if (key == "host")
        event.host = HostId{number(value)};
      else if (key == "leases")
        event.leases = number(value);
      else if (key == "was")
        event.replaces = WorkerId{number(value)};
      else if (key == "can")
        for (const auto& c : split(value, ','))
          event.abilities.emplace_back(static_cast<std::uint16_t>(number(c)));
      else if (key == "holds")
        for (const auto& h : split(value, ',')) event.held.push_back(held(h));
      else
        throw std::runtime_error("no such key: " + key);
    }
    step(event);
  }

  HeldAttempt held(const std::string& text) {
    const std::vector<std::string> parts = split(text, ':');
    HeldAttempt held{.attempt = AttemptId{number(parts.at(0))}};
    if (parts.size() > 1) held.job = named(parts[1]);
    return held;
  }

  void end(const std::vector<std::string>& words) {
    AttemptsEnded event{WorkerId{number(words.at(1))}, {}};
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::vector<std::string> parts = split(words[i], '=');
      const std::vector<std::string> how = split(parts.at(1), ':');
      EndedAttempt ended{AttemptId{number(parts[0])}, ending_from(how.at(0)), {}};
      if (how.size() > 1) {
        for (const std::string& job : split(how[1], ',')) ended.lost.push_back(named(job));
      }
      event.ended.push_back(ended);
    }
    step(event);
  }

  std::vector<JobId> jobs_named(const std::vector<std::string>& words) {
    std::vector<JobId> jobs;
    for (std::size_t i = 1; i < words.size(); ++i) jobs.push_back(named(words[i]));
    return jobs;
  }

  /// Time passes with a Tick at every deadline, and everybody who is there says so.
  void run_for(base::Duration span) {
    const base::Time end = now_ + span;
    while (const auto due = core_.next_deadline()) {
      if (*due > end) break;
      now_ = std::max(now_, *due);
      step(Tick{}, /*timed=*/true);
    }
    now_ = end;
  }

  void step(const Event& event, bool timed = false) {
    for (const Action& action : core_.step(event, now_)) {
      if (timed) out_ += "at " + text_of(now_) + ": ";
      out_ += text_of(action, names_) + "\n";
    }
    if (const std::string broken = core_.check_invariants(); !broken.empty()) {
      out_ += "BROKEN: " + broken + "\n";
    }
  }

  JobId named(const std::string& name) {
    const auto it = ids_.find(name);
    if (it == ids_.end()) throw std::runtime_error("no such job: " + name);
    return it->second;
  }

  Core core_;
  base::Time now_{0};
  std::map<std::string, JobId> ids_;
  std::vector<std::string> job_names_;
  std::vector<JobSpec> added_;
  std::string out_;
  JobNames names_ = [this](JobId job) { return job_names_.at(job.value()); };
};

}  // namespace

std::string run_scenario(const std::string& text) {
  Scenario scenario;
  std::istringstream in(text);
  std::string renewed;
  std::vector<std::string> block;
  bool in_output = false;
  for (std::string line; std::getline(in, line);) {
    if (in_output) {
      if (!line.empty()) continue;  // the old output
      in_output = false;
      renewed += "\n";
      continue;
    }
    renewed += line + "\n";
    if (line == "----") {
      renewed += scenario.run(block);
      block.clear();
      in_output = true;
    } else {
      block.push_back(line);
    }
  }
  return renewed;
}

}  // namespace layerfarm::test
