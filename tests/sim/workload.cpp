#include "tests/sim/workload.h"

namespace layerfarm::sim {
namespace {

using coordinator::core::ClassId;
using coordinator::core::GroupId;
using coordinator::core::JobId;
using domain::Stage;

constexpr ClassId kReader{0};

Nature draw_nature(Random& random) {
  if (random.chance(800)) return Nature::Fine;
  return static_cast<Nature>(random.between(1, 7));
}

class Drawing {
 public:
  explicit Drawing(Random& random) : random_(random) {
    work_.classes = static_cast<std::uint16_t>(random.between(2, 4));
    // One class for both is a laptop; two are build hosts and boards.
    split_ = random.chance(300) && work_.classes >= 3;
    quick_ = random.chance(400);
  }

  Workload draw() {
    SimJob analyze = job(Stage::Analyze, kReader, 0);
    analyze.nature = Nature::Fine;
    add(analyze);
    const auto groups = static_cast<std::uint16_t>(random_.between(1, 3));
    for (std::uint16_t g = 1; g <= groups; ++g) {
      work_.groups.push_back({GroupId{g}, static_cast<std::uint16_t>(random_.between(1, 8))});
    }
    const std::int64_t layers = random_.between(1, 12);
    for (std::int64_t i = 0; i < layers; ++i) layer(groups);
    return std::move(work_);
  }

 private:
  SimJob job(Stage stage, ClassId ability, std::uint16_t group) {
    SimJob out;
    out.spec.stage = stage;
    out.spec.ability = ability;
    out.spec.group = GroupId{group};
    out.nature = draw_nature(random_);
    const auto most = quick_ ? std::chrono::milliseconds(20) : std::chrono::milliseconds(4000);
    out.takes = random_.duration(std::chrono::milliseconds(1), most);
    if (random_.chance(300)) {
      out.spec.cost_us = static_cast<std::uint32_t>(out.takes / std::chrono::microseconds(1));
    }
    out.spec.limit_ms = 20000;
    return out;
  }

  JobId add(SimJob sim_job) {
    sim_job.spec.id = JobId{static_cast<std::uint32_t>(work_.jobs.size())};
    work_.jobs.push_back(std::move(sim_job));
    return work_.jobs.back().spec.id;
  }

  /// One layer on every group: prepare once, then compile and execute each.
  void layer(std::uint16_t groups) {
    const JobId prepare = add(job(Stage::Prepare, kReader, 0));
    const bool compiled = random_.chance(800);
    const bool skip_mode = random_.chance(250);
    std::optional<JobId> higher;
    for (std::uint16_t g = 1; g <= groups; ++g) {
      const ClassId build{split_ ? std::uint16_t{1}
                                 : static_cast<std::uint16_t>(1 + g % (work_.classes - 1))};
      const ClassId run{split_ ? std::uint16_t{2} : build.value()};
      const auto start_as = [&](SimJob& sim_job) {
        if (!higher) return;
        sim_job.spec.speculative = true;
        sim_job.instead_of = higher;
      };
      SimJob execute = job(Stage::Execute, run, g);
      execute.spec.needs = {prepare};
      if (compiled) {
        SimJob compile = job(Stage::Compile, build, g);
        start_as(compile);
        execute.spec.needs.push_back(add(compile));
      }
      start_as(execute);
      const JobId executed = add(execute);
      if (skip_mode) higher = executed;
      if (!skip_mode && random_.chance(150)) {
        SimJob time = job(Stage::Time, run, g);
        time.spec.needs = {executed};
        time.spec.exclusive = true;
        time.spec.priority = -1;
        add(time);
      }
    }
  }

  Random& random_;
  Workload work_;
  bool split_ = false;
  bool quick_ = false;
};

}  // namespace

Workload draw_workload(Random& random) { return Drawing(random).draw(); }

std::optional<domain::Ending> own_ending(Nature nature, std::uint8_t memory_factor) {
  switch (nature) {
    case Nature::Fine:
      return domain::Ending::Done;
    case Nature::Refused:
      return domain::Ending::Refused;
    case Nature::Crashes:
      return domain::Ending::Crashed;
    case Nature::TimesOut:
      return domain::Ending::TimedOut;
    case Nature::FillsMemory:
      return domain::Ending::OverMemory;
    case Nature::TightMemory:
      return memory_factor > 1 ? domain::Ending::Done : domain::Ending::OverMemory;
    case Nature::PrintsALot:
      return domain::Ending::OverOutput;
    case Nature::KillsWorker:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace layerfarm::sim
