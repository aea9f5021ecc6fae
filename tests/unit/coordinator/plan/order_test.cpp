// Properties of planning over random models, options and outcomes: the order in which jobs are
// settled never shows, and skip mode is what a second, plain implementation of it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "coordinator/plan/case_book.h"
#include "tests/support/coordinator/planning.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::plan;
using domain::Ending;
using domain::Stage;
using domain::Status;

using Random = std::mt19937;

int below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<unsigned>(bound));
}

/// A world: requests, and what each job would come to (a function of its key, so equal work has
/// equal outcomes).
struct World {
  std::vector<PlanRequest> requests;
  std::uint32_t seed = 0;
  std::map<base::Digest, std::shared_ptr<const domain::Outcome>> known_before;

  [[nodiscard]] std::shared_ptr<const domain::Outcome> outcome_of(const JobContent& content,
                                                                  const base::Digest& key) const {
    Random random(static_cast<std::uint32_t>(std::hash<base::Digest>{}(key)) ^ seed);
    const int draw = below(random, 10);
    switch (content.stage) {
      case Stage::Prepare:
        return draw == 0 ? test::failed(Stage::Prepare, Ending::Refused, "reference")
                         : test::prepared();
      case Stage::Compile:
        if (draw == 0) return test::failed(Stage::Compile, Ending::Crashed, "crash");
        return draw < 3 ? test::failed(Stage::Compile, Ending::Refused, "refused")
                        : test::compiled();
      case Stage::Execute: {
        if (draw == 0) return test::failed(Stage::Execute, Ending::TimedOut, "slow");
        auto out = std::make_shared<domain::Outcome>(*test::executed(draw < 5 ? 0.001 : 0.5));
        // Sometimes the bounds do not decide at the fraction in force.
        if (draw == 9) out->executed->outputs[0].max_rel_above = {0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0};
        return out;
      }
      case Stage::Recompare: {
        auto out = std::make_shared<domain::Outcome>(*test::executed(0.5));
        out->stage = Stage::Recompare;
        out->executed->outputs[0].counted_at = content.tolerance;
        out->executed->outputs[0].required_max_tol = draw < 5 ? 0 : 0.5;
        return out;
      }
      case Stage::Time: {
        if (draw == 0) return test::failed(Stage::Time, Ending::Crashed, "crash");
        auto out = std::make_shared<domain::Outcome>();
        out->stage = Stage::Time;
        out->ending = Ending::Done;
        out->timed = domain::Timed{.runs_us = {draw}, .what = "test"};
        return out;
      }
      case Stage::Analyze:
      case Stage::Whole:
        break;
    }
    return nullptr;
  }
};

World make_world(std::uint32_t seed) {
  Random random(seed);
  World world;
  world.seed = seed * 7919;
  const std::vector<std::string> names{"npu", "dsp", "host"};
  PlanOptions options;
  options.skip_mode = below(random, 3) > 0;
  options.recompute = below(random, 4) == 0;
  options.dedup = static_cast<Dedup>(below(random, 3));
  options.collect_timing = below(random, 3) == 0;
  if (below(random, 3) == 0) options.tolerance.fp_abs_tol_frac = 0.003;
  if (below(random, 4) == 0)
    options.skip_executors = {names[static_cast<std::size_t>(below(random, 3))]};
  if (below(random, 4) == 0) options.skip_ops = {"Relu"};
  std::vector<std::shared_ptr<const PlanChip>> chips;
  for (int i = 0; i <= below(random, 2); ++i) {
    auto chip = test::chip("chip" + std::to_string(i),
                           {names.begin(), names.begin() + 1 + below(random, 3)});
    chip->needs_compile = below(random, 4) != 0;
    chip->needs_prepare = below(random, 6) != 0;
    chips.push_back(chip);
  }
  for (int m = 0; m <= below(random, 2); ++m) {
    std::vector<domain::Layer> layers;
    for (int i = 0; i < 1 + below(random, 6); ++i) {
      const std::string op = below(random, 4) == 0 ? "Relu" : "Conv";
      layers.push_back(test::layer(op + "_" + std::to_string(i),
                                   op + std::to_string(below(random, 3)),
                                   std::to_string(below(random, 2))));
      if (below(random, 12) == 0) layers.back().problem = "unknown shape";
    }
    PlanRequest request = test::request(test::model(layers), chips);
    request.options = options;
    for (std::size_t c = 0; c < chips.size(); ++c) {
      OldReport old;
      for (const domain::Layer& layer : layers) {
        if (below(random, 3) == 0) {
          old.statuses[layer.id][names[static_cast<std::size_t>(below(random, 3))]] =
              static_cast<Status>(below(random, 3));
        }
        if (below(random, 6) == 0) old.edits[layer.id].fp_max_tol = 0.9;
      }
      request.old.push_back(old);
    }
    world.requests.push_back(std::move(request));
  }
  return world;
}

/// A case's end, in a form that compares and prints.
std::string told(const CaseSettled& one) {
  std::string out = "file " + std::to_string(one.file.value()) + " layer " +
                    std::to_string(one.layer) + " executor " + std::to_string(one.executor) + ": ";
  switch (one.how) {
    case How::Judged:
      out += "judged ";
      break;
    case How::Failed:
      out += "failed ";
      break;
    case How::Copied:
      out += "copied from " + std::to_string(one.source_layer) + " ";
      break;
    case How::CopiedOld:
      out += "copied old from " + std::to_string(one.source_layer) + " ";
      break;
    case How::Skipped:
      return out + "skipped " + std::to_string(static_cast<int>(one.skip)) + " " +
             (one.skip == SkipReason::AlreadyWorks ? std::to_string(one.skip_executor) : "") +
             (one.skip == SkipReason::DuplicateNotTested ? std::to_string(one.source_layer) : "");
    case How::Unsettled:
      return out + "unsettled " + one.reason;
  }
  out += domain::status_name(one.judgement.status);
  out += " max " + std::to_string(one.tolerance.fp_max_tol) + " " + one.judgement.reason;
  if (one.outcome)
    out += " [" + std::string(domain::stage_name(one.outcome->stage)) + ": " +
           one.outcome->diagnostic.text + "]";
  if (one.timed) out += " timed " + std::to_string(one.timed->timed->runs_us[0]);
  return out;
}

/// Plays a world: requests come at random moments, jobs end in random order (after what they need),
/// as the scheduler would have it.
class Game {
 public:
  Game(const World& world, std::uint32_t order) : world_(world), random_(order) {
    known_.outcomes = world.known_before;
  }

  std::set<std::string> play() {
    std::size_t next_request = 0;
    while (true) {
      std::vector<JobId> ready = ready_jobs();
      const bool add =
          next_request < world_.requests.size() && (ready.empty() || below(random_, 4) == 0);
      if (add) {
        auto added = book_.add(world_.requests[next_request++]);
        REQUIRE(added.has_value());
        take(std::move(added->turn));
      } else if (!ready.empty()) {
        settle(ready[static_cast<std::size_t>(below(random_, static_cast<int>(ready.size())))]);
      } else {
        break;
      }
    }
    std::uint64_t cases = 0;
    for (std::uint32_t file = 0; file < files_of_world(); ++file) {
      const FileCounts counts = book_.counts(FileId(file));
      CHECK(counts.settled == counts.cases);
      cases += counts.cases;
    }
    CHECK(cases == said_.size());
    return said_;
  }

  [[nodiscard]] const test::KnownOutcomes& known() const { return known_; }
  int ran = 0;

 private:
  enum class At { Open, Done, Failed, Dropped };
  struct Job {
    PlannedJob planned;
    At at = At::Open;
  };

  [[nodiscard]] std::uint32_t files_of_world() const {
    std::uint32_t out = 0;
    for (const PlanRequest& request : world_.requests)
      out += static_cast<std::uint32_t>(request.chips.size());
    return out;
  }

  void take(Turn turn) {
    for (const PlannedJob& job : turn.jobs) {
      REQUIRE(job.id.value() == jobs_.size());
      jobs_.push_back({job, job.known ? At::Done : At::Open});
    }
    for (const JobId job : turn.wanted) jobs_.at(job.value()).planned.speculative = false;
    for (const JobId job : turn.dropped) {
      REQUIRE(jobs_.at(job.value()).at == At::Open);
      jobs_.at(job.value()).at = At::Dropped;
    }
    for (const CaseSettled& one : turn.settled)
      CHECK_MESSAGE(said_.insert(told(one)).second, told(one));
    REQUIRE(book_.check_invariants() == "");
  }

  [[nodiscard]] std::vector<JobId> ready_jobs() const {
    std::vector<JobId> out;
    for (const Job& job : jobs_) {
      if (job.at != At::Open) continue;
      // Blocked as soon as one of its needs failed, else ready when all are done.
      bool all = true;
      bool failed = false;
      for (const auto& need : job.planned.needs) {
        if (!need) continue;
        const At at = jobs_[need->value()].at;
        REQUIRE(at != At::Dropped);
        all = all && at == At::Done;
        failed = failed || at == At::Failed;
      }
      if (all || failed) out.push_back(job.planned.id);
    }
    return out;
  }

  void settle(JobId id) {
    Job& job = jobs_[id.value()];
    for (const auto& need : job.planned.needs) {
      if (!need || jobs_[need->value()].at != At::Failed) continue;
      job.at = At::Failed;
      return take(book_.on_settled(id, DependencyFailed{}));
    }
    const JobContent content = book_.content(id);
    const base::Digest key = book_.key(id);
    auto outcome = world_.outcome_of(content, key);
    ++ran;
    job.at = outcome->ending == Ending::Done ? At::Done : At::Failed;
    if (domain::answers_later_runs(outcome->ending)) known_.outcomes[key] = outcome;
    take(book_.on_settled(id, Answered{std::move(outcome)}));
  }

  const World& world_;
  Random random_;
  test::KnownOutcomes known_;
  CaseBook book_{known_};
  std::vector<Job> jobs_;
  std::set<std::string> said_;
};

/// What a case comes to when it is tested by itself, computed straight from the keys.
struct Plain {
  const World& world;

  [[nodiscard]] std::shared_ptr<const domain::Outcome> outcome(const PlanRequest& request,
                                                               std::size_t chip_place,
                                                               std::uint32_t layer_place,
                                                               std::uint32_t executor,
                                                               Status& status) const {
    const PlanChip& chip = *request.chips[chip_place];
    const domain::Layer& layer = request.model->layers[layer_place];
    status = Status::Error;
    JobContent content;
    const auto prepare = domain::prepare_key(layer, request.inputs, request.reference);
    const auto compile =
        domain::compile_key(layer, chip.spec, chip.spec.executors[executor], chip.tool);
    const auto ask = [&](Stage stage, const base::Digest& key) {
      content.stage = stage;
      return world.outcome_of(content, key);
    };
    if (!layer.problem.empty()) return nullptr;
    if (chip.needs_prepare) {
      if (auto out = ask(Stage::Prepare, prepare); out->ending != Ending::Done) return out;
    }
    if (chip.needs_compile) {
      if (auto out = ask(Stage::Compile, compile); out->ending != Ending::Done) return out;
    }
    const auto execute_key = domain::execute_key(prepare, compile, chip.spec, chip.tool);
    auto execute = ask(Stage::Execute, execute_key);
    if (execute->ending != Ending::Done) return execute;
    const auto edit = request.old[chip_place].edits.find(layer.id);
    const domain::Tolerance tolerance =
        tolerance_in_force(chip.spec.executors[executor], request.options.tolerance,
                           edit == request.old[chip_place].edits.end() ? nullptr : &edit->second);
    auto judgement = domain::judge(execute->executed->outputs, 1, tolerance);
    if (!judgement) {
      content.tolerance = tolerance;
      execute = ask(Stage::Recompare, domain::recompare_key(execute_key, tolerance));
      judgement = domain::judge(execute->executed->outputs, 1, tolerance);
    }
    REQUIRE(judgement.has_value());
    status = judgement->status;
    return execute;
  }

  /// Executor by executor, as one would do it by hand: "-" = not tested.
  [[nodiscard]] std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> out;
    std::uint32_t file = 0;
    for (const PlanRequest& request : world.requests) {
      const PlanOptions& options = request.options;
      for (std::size_t chip = 0; chip < request.chips.size(); ++chip, ++file) {
        const auto& executors = request.chips[chip]->spec.executors;
        for (std::uint32_t layer = 0; layer < request.model->layers.size(); ++layer) {
          const domain::Layer& spec = request.model->layers[layer];
          bool works = false;
          if (options.skip_mode && !options.recompute) {
            const auto old = request.old[chip].statuses.find(spec.id);
            if (old != request.old[chip].statuses.end()) {
              for (const auto& executor : executors) {
                const bool skipped = std::count(options.skip_executors.begin(),
                                                options.skip_executors.end(), executor.name) > 0;
                const auto status = old->second.find(executor.name);
                works = works || (!skipped && status != old->second.end() &&
                                  status->second == Status::Success);
              }
            }
          }
          for (std::uint32_t executor = 0; executor < executors.size(); ++executor) {
            std::string& said = out[std::to_string(file) + "/" + std::to_string(layer) + "/" +
                                    std::to_string(executor)];
            said = "-";
            if (std::count(options.skip_executors.begin(), options.skip_executors.end(),
                           executors[executor].name) > 0)
              continue;
            if (std::count(options.skip_ops.begin(), options.skip_ops.end(), spec.op_type) > 0)
              continue;
            if (works) continue;
            Status status{};
            static_cast<void>(outcome(request, chip, layer, executor, status));
            said = domain::status_name(status);
            works = options.skip_mode && status == Status::Success;
          }
        }
      }
    }
    return out;
  }
};

/// The same form from what the book said.
std::map<std::string, std::string> short_form(const std::set<std::string>& said) {
  std::map<std::string, std::string> out;
  for (const std::string& line : said) {
    unsigned file = 0;
    unsigned layer = 0;
    unsigned executor = 0;
    REQUIRE(std::sscanf(line.c_str(), "file %u layer %u executor %u:", &file, &layer, &executor) ==
            3);
    std::string word = "-";
    if (line.find(": skipped") == std::string::npos) {
      for (const char* status : {"success", "difference", "error"}) {
        if (line.find(std::string(" ") + status + " max") != std::string::npos) word = status;
      }
    }
    out[std::to_string(file) + "/" + std::to_string(layer) + "/" + std::to_string(executor)] = word;
  }
  return out;
}

}  // namespace

TEST_CASE("any order of settlements gives the same set of settled cases, cold and warm") {
  int together = 0;
  for (std::uint32_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    World world = make_world(seed);
    Game first(world, 1);
    const auto expected = first.play();
    together += static_cast<int>(expected.size());
    for (std::uint32_t order = 2; order <= 5; ++order) {
      CAPTURE(order);
      CHECK(Game(world, order).play() == expected);
    }
    // With some of it known, and with all of it known: nothing changes but what is run.
    World half = world;
    Random random(seed);
    for (const auto& [key, outcome] : first.known().outcomes) {
      if (below(random, 2) == 0) half.known_before[key] = outcome;
    }
    CHECK(Game(half, seed).play() == expected);
    World warm = world;
    warm.known_before = first.known().outcomes;
    Game last(warm, seed);
    CHECK(last.play() == expected);
    const bool recompute = world.requests[0].options.recompute;
    if (!recompute) CHECK(last.ran <= first.ran);
  }
  CHECK(together > 2000);
}

TEST_CASE("skip mode and everything else but dedup is what a plain second implementation says") {
  int skipping = 0;
  for (std::uint32_t seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    World world = make_world(seed);
    for (PlanRequest& request : world.requests) {
      request.options.dedup = Dedup::Off;
      request.options.collect_timing = false;
    }
    if (world.requests[0].options.skip_mode) ++skipping;
    CHECK(short_form(Game(world, seed).play()) == Plain{world}.all());
  }
  CHECK(skipping > 200);
}

TEST_CASE("exact dedup gives the statuses that no dedup gives") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    World exact = make_world(seed);
    World off = make_world(seed);
    for (PlanRequest& request : exact.requests) {
      request.options.dedup = Dedup::Exact;
      request.old.assign(request.chips.size(), {});
    }
    for (PlanRequest& request : off.requests) {
      request.options.dedup = Dedup::Off;
      request.old.assign(request.chips.size(), {});
    }
    CHECK(short_form(Game(exact, seed).play()) == short_form(Game(off, seed).play()));
  }
}
