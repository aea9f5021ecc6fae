#include "coordinator/plan/case_book.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "coordinator/plan/forecast.h"
#include "tests/support/coordinator/planning.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::plan;
using domain::Ending;
using domain::Stage;
using domain::Status;
using test::chip;
using test::layer;
using test::model;
using test::request;

/// A book, what it has said so far, and somebody who does the jobs.
struct Bench {
  test::KnownOutcomes known;
  CaseBook book{known};
  std::vector<PlannedJob> jobs;  // by id
  std::vector<JobId> wanted;
  std::vector<JobId> dropped;
  std::vector<CaseSettled> settled;
  std::vector<PlannedGroup> groups;

  void take(Turn turn) {
    for (const PlannedGroup& group : turn.groups) {
      REQUIRE(group.group == groups.size() + 1);
      groups.push_back(group);
    }
    for (const PlannedJob& job : turn.jobs) {
      REQUIRE(job.id.value() == jobs.size());
      for (const auto& need : job.needs) {
        if (need) REQUIRE(*need < job.id);
      }
      jobs.push_back(job);
    }
    for (const JobId job : turn.wanted) REQUIRE(job.value() < jobs.size());
    wanted.insert(wanted.end(), turn.wanted.begin(), turn.wanted.end());
    dropped.insert(dropped.end(), turn.dropped.begin(), turn.dropped.end());
    settled.insert(settled.end(), turn.settled.begin(), turn.settled.end());
    REQUIRE(book.check_invariants() == "");
  }
  FileId add(PlanRequest given) {
    auto added = book.add(std::move(given));
    REQUIRE(added.has_value());
    take(std::move(added->turn));
    return added->first_file;
  }
  /// Settles a job; Done and Refused are known from then on, as the store would have it.
  void answer(JobId job, std::shared_ptr<const domain::Outcome> outcome) {
    if (domain::answers_later_runs(outcome->ending)) known.outcomes[book.key(job)] = outcome;
    take(book.on_settled(job, Answered{std::move(outcome)}));
  }
  void block(JobId job) { take(book.on_settled(job, DependencyFailed{})); }
  void stick(JobId job, const std::string& reason) {
    take(book.on_settled(job, NotSettled{reason}));
  }

  [[nodiscard]] std::vector<PlannedJob> of(Stage stage) const {
    std::vector<PlannedJob> out;
    std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(out),
                 [&](const PlannedJob& job) { return job.stage == stage; });
    return out;
  }
  [[nodiscard]] std::size_t count(Stage stage) const { return of(stage).size(); }
  /// The job of that stage for a layer and executor of the first chip that has both.
  [[nodiscard]] JobId job(Stage stage, const std::string& layer_id,
                          const std::string& executor = "") const {
    for (const PlannedJob& one : jobs) {
      if (one.stage != stage) continue;
      const JobContent content = book.content(one.id);
      if (content.model->layers[content.layer].id != layer_id) continue;
      if (content.chip && !executor.empty() &&
          content.chip->spec.executors[content.executor].name != executor)
        continue;
      return one.id;
    }
    FAIL("no such job");
    return JobId(0);
  }
  /// The settled case; fails unless there is exactly one.
  [[nodiscard]] const CaseSettled& of_case(std::uint32_t layer_place, std::uint32_t executor,
                                           FileId file = FileId(0)) const {
    const CaseSettled* found = nullptr;
    for (const CaseSettled& one : settled) {
      if (one.file != file || one.layer != layer_place || one.executor != executor) continue;
      REQUIRE(found == nullptr);
      found = &one;
    }
    REQUIRE(found != nullptr);
    return *found;
  }
  [[nodiscard]] bool is_open(std::uint32_t layer_place, std::uint32_t executor,
                             FileId file = FileId(0)) const {
    return std::none_of(settled.begin(), settled.end(), [&](const CaseSettled& one) {
      return one.file == file && one.layer == layer_place && one.executor == executor;
    });
  }
};

std::shared_ptr<const domain::Outcome> refused(Stage stage, const std::string& text = "no") {
  return test::failed(stage, Ending::Refused, text);
}

}  // namespace

TEST_CASE(
    "a case becomes prepare, compile and execute, and its verdict comes from the comparison") {
  Bench bench;
  bench.add(request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})}));
  REQUIRE(bench.jobs.size() == 3);
  CHECK(bench.settled.empty());
  CHECK(bench.groups.size() == 1);
  const PlannedJob execute = bench.of(Stage::Execute).at(0);
  CHECK(execute.needs[0] == bench.job(Stage::Prepare, "Conv_a"));
  CHECK(execute.needs[1] == bench.job(Stage::Compile, "Conv_a"));
  CHECK(execute.group == 1);
  CHECK(bench.of(Stage::Prepare).at(0).group == 0);
  CHECK(bench.book.waits_for(FileId(0), 0, 0) == execute.id);

  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a"), test::compiled());
  CHECK(bench.settled.empty());
  bench.answer(execute.id, test::executed(0.001));
  const CaseSettled& done = bench.of_case(0, 0);
  CHECK(done.how == How::Judged);
  CHECK(done.judgement.status == Status::Success);
  CHECK_FALSE(done.stored);
  CHECK_FALSE(done.compile_stored);
  CHECK(*done.outcome == *test::executed(0.001));
  CHECK(done.compile_key == bench.book.key(bench.job(Stage::Compile, "Conv_a")));
  CHECK(bench.book.counts(FileId(0)).settled == 1);
  CHECK(bench.book.counts(FileId(0)).cases == 1);
  CHECK_FALSE(bench.book.waits_for(FileId(0), 0, 0).has_value());
}

TEST_CASE(
    "what a job's lease says: its key, layer, chip, executor, tolerance and what it builds on") {
  Bench bench;
  const auto target = chip("c", {"npu", "host"});
  target->spec.executors[1].tolerance.fp_max_tol = 0.5;
  const auto analysis = model({layer("Conv_a", "conv"), layer("Relu_b", "relu")});
  PlanRequest given = request(analysis, {target});
  given.inputs.seed = 7;
  bench.add(given);
  const JobId execute = bench.job(Stage::Execute, "Relu_b", "host");
  const JobContent content = bench.book.content(execute);
  CHECK(content.model == analysis);
  CHECK(content.layer == 1);
  CHECK(content.executor == 1);
  CHECK(content.chip == target);
  CHECK(content.tolerance.fp_max_tol == 0.5);
  CHECK(content.inputs.seed == 7);
  CHECK(content.prepare == bench.job(Stage::Prepare, "Relu_b"));
  CHECK(content.compile == bench.job(Stage::Compile, "Relu_b", "host"));
  const auto prepare = domain::prepare_key(analysis->layers[1], given.inputs, given.reference);
  const auto compile = domain::compile_key(analysis->layers[1], target->spec,
                                           target->spec.executors[1], target->tool);
  CHECK(bench.book.key(execute) ==
        domain::execute_key(prepare, compile, target->spec, target->tool));
  CHECK(bench.book.key(*content.prepare) == prepare);
  CHECK(bench.book.content(*content.prepare).chip == nullptr);
  CHECK(bench.book.key(*content.compile) == compile);
}

TEST_CASE("equal work runs once: across layers, models and chip files of one description") {
  Bench bench;
  const auto one = chip("one", {"npu"});
  const auto two = chip("two", {"npu"});
  two->spec.target = one->spec.target;  // another name for the same thing
  const auto other = chip("other", {"npu"});
  bench.add(
      request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv"), layer("Relu_c", "relu")}),
              {one, two, other}));
  CHECK(bench.count(Stage::Prepare) == 2);  // whatever the chip
  CHECK(bench.count(Stage::Compile) == 4);  // two kinds of layers for two kinds of chips
  CHECK(bench.count(Stage::Execute) == 4);
  bench.add(request(model({layer("Conv_z", "conv")}), {one}));
  CHECK(bench.jobs.size() == 10);
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a"), test::compiled());
  bench.answer(bench.job(Stage::Execute, "Conv_a"), test::executed(0.5));
  CHECK(bench.settled.size() == 5);  // two layers on two chips, and the other model
  for (const CaseSettled& one_case : bench.settled) {
    CHECK(one_case.judgement.status == Status::Difference);
    CHECK(one_case.how == How::Judged);  // shared by key: no mark
  }
  CHECK_FALSE(bench.is_open(0, 0, FileId(3)));
}

TEST_CASE(
    "another order of drawing, another reference or another seed is another prepare but the same "
    "compile") {
  Bench bench;
  domain::Layer a = layer("Sub_a", "sub");
  a.inputs.resize(2);
  a.draw_order = {0, 1};
  domain::Layer b = a;
  b.id = "Sub_b";
  b.draw_order = {1, 0};
  const auto target = chip("c", {"npu"});
  bench.add(request(model({a, b}), {target}));
  CHECK(bench.count(Stage::Prepare) == 2);
  CHECK(bench.count(Stage::Compile) == 1);
  CHECK(bench.count(Stage::Execute) == 2);
  PlanRequest seeded = request(model({a}), {target});
  seeded.inputs.seed = 99;
  bench.add(seeded);
  CHECK(bench.count(Stage::Prepare) == 3);
  CHECK(bench.count(Stage::Compile) == 1);
  PlanRequest referenced = request(model({a}), {target});
  referenced.reference.version = "reference 2";
  bench.add(referenced);
  CHECK(bench.count(Stage::Prepare) == 4);
  CHECK(bench.count(Stage::Compile) == 1);
  CHECK(bench.count(Stage::Execute) == 4);
}

TEST_CASE("a toolchain that needs no compile or no prepare gets no such jobs") {
  Bench bench;
  const auto plain = chip("plain", {"cpu"});
  plain->needs_compile = false;
  const auto bare = chip("bare", {"cpu"});
  bare->needs_prepare = false;
  bare->needs_compile = false;
  bench.add(request(model({layer("Conv_a", "conv")}), {plain, bare}));
  CHECK(bench.count(Stage::Prepare) == 1);
  CHECK(bench.count(Stage::Compile) == 0);
  REQUIRE(bench.count(Stage::Execute) == 2);
  CHECK(bench.of(Stage::Execute)[0].needs[0] == bench.job(Stage::Prepare, "Conv_a"));
  CHECK_FALSE(bench.of(Stage::Execute)[0].needs[1].has_value());
  CHECK_FALSE(bench.of(Stage::Execute)[1].needs[0].has_value());
  bench.answer(bench.of(Stage::Execute)[1].id, test::executed(0));
  CHECK(bench.of_case(0, 0, FileId(1)).compile_key.is_zero());
}

TEST_CASE(
    "what the store knows is settled at once, and a tolerance change is only another judgement") {
  Bench first;
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  first.add(request(analysis, {target}));
  first.answer(first.job(Stage::Prepare, "Conv_a"), test::prepared());
  first.answer(first.job(Stage::Compile, "Conv_a"), test::compiled());
  first.answer(first.job(Stage::Execute, "Conv_a"), test::executed(0.05));
  CHECK(first.of_case(0, 0).judgement.status == Status::Difference);

  Bench second;
  second.known.outcomes = first.known.outcomes;
  PlanRequest loose = request(analysis, {target});
  loose.options.tolerance.fp_avg_tol = 0.1;
  loose.options.tolerance.fp_max_tol = 0.1;
  second.add(loose);
  CHECK(second.jobs.empty());
  const CaseSettled& done = second.of_case(0, 0);
  CHECK(done.judgement.status == Status::Success);
  CHECK(done.tolerance.fp_max_tol == 0.1);
  CHECK(done.stored);
  CHECK(done.compile_stored);
}

TEST_CASE(
    "half of a case that is known is not done again: jobs the store answers are handed out as "
    "known") {
  Bench first;
  const auto target = chip("c", {"npu", "host"});
  const auto analysis = model({layer("Conv_a", "conv")});
  first.add(request(analysis, {target}));
  first.answer(first.job(Stage::Prepare, "Conv_a"), test::prepared());
  first.answer(first.job(Stage::Compile, "Conv_a", "npu"), test::compiled());
  Bench second;
  second.known.outcomes = first.known.outcomes;
  second.add(request(analysis, {target}));
  CHECK(second.jobs[second.job(Stage::Prepare, "Conv_a").value()].known);
  CHECK(second.jobs[second.job(Stage::Compile, "Conv_a", "npu").value()].known);
  CHECK_FALSE(second.jobs[second.job(Stage::Compile, "Conv_a", "host").value()].known);
  CHECK_FALSE(second.jobs[second.job(Stage::Execute, "Conv_a", "npu").value()].known);
  second.answer(second.job(Stage::Execute, "Conv_a", "npu"), test::executed(0));
  CHECK(second.of_case(0, 0).compile_stored);
  CHECK_FALSE(second.of_case(0, 0).stored);
}

TEST_CASE("numbers that cannot decide lead to a recompare job, and its counts are the verdict's") {
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  // Off by 0.05 at most; with a fraction of 0.003 nobody can say from the bounds at 0.002 and
  // 0.005.
  auto outcome = std::make_shared<domain::Outcome>(*test::executed(0.05));
  outcome->executed->outputs[0].max_rel_above = {0.05, 0.05, 0.05, 0.05, 0.05, 0.0, 0.0, 0.0};
  Bench bench;
  PlanRequest given = request(analysis, {target});
  given.options.tolerance.fp_abs_tol_frac = 0.003;
  bench.add(given);
  const JobId execute = bench.job(Stage::Execute, "Conv_a");
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a"), test::compiled());
  bench.answer(execute, outcome);
  CHECK(bench.settled.empty());
  REQUIRE(bench.count(Stage::Recompare) == 1);
  const PlannedJob again = bench.of(Stage::Recompare)[0];
  CHECK(again.needs[0] == bench.job(Stage::Prepare, "Conv_a"));
  CHECK(again.needs[1] == execute);
  const JobContent content = bench.book.content(again.id);
  CHECK(content.execute == execute);
  CHECK(content.tolerance.fp_abs_tol_frac == 0.003);
  const base::Digest again_key = bench.book.key(again.id);
  CHECK(again_key == domain::recompare_key(bench.book.key(execute), content.tolerance));

  auto counted = std::make_shared<domain::Outcome>(*outcome);
  counted->stage = Stage::Recompare;
  counted->executed->outputs[0].counted_at = content.tolerance;
  counted->executed->outputs[0].required_max_tol = 0.0;
  bench.answer(again.id, counted);
  CHECK(bench.of_case(0, 0).judgement.status == Status::Success);
  CHECK(bench.of_case(0, 0).outcome->stage == Stage::Recompare);

  // Next time both are known. And when only the execution is: the recompare is handed out with all
  // that it may need again.
  Bench warm;
  warm.known.outcomes = bench.known.outcomes;
  warm.add(given);
  CHECK(warm.jobs.empty());
  CHECK(warm.of_case(0, 0).stored);
  Bench half;
  half.known.outcomes = bench.known.outcomes;
  half.known.outcomes.erase(again_key);
  half.add(given);
  REQUIRE(half.jobs.size() == 4);
  CHECK(std::count_if(half.jobs.begin(), half.jobs.end(),
                      [](const PlannedJob& job) { return job.known; }) == 3);
  half.answer(half.job(Stage::Recompare, "Conv_a"), counted);
  CHECK(half.of_case(0, 0).judgement.status == Status::Success);
  // The kept outputs were pruned: execute makes them again, with the counts that are wanted now.
  Bench lost;
  lost.known.outcomes = half.known.outcomes;
  lost.known.outcomes.erase(again_key);
  lost.known.outcomes[bench.book.key(execute)] = [&] {
    auto with_outputs = std::make_shared<domain::Outcome>(*outcome);
    with_outputs->executed->actual = {test::key_of("kept")};
    return with_outputs;
  }();
  lost.add(given);
  const JobId wants = lost.job(Stage::Recompare, "Conv_a");
  const auto producers = lost.book.producers_of(wants, {test::key_of("kept")});
  REQUIRE(producers.size() == 1);
  CHECK(producers[0] == lost.job(Stage::Execute, "Conv_a"));
  CHECK(lost.book.content(producers[0]).tolerance.fp_abs_tol_frac == 0.003);
  lost.answer(producers[0], counted);  // again
  lost.block(
      wants);  // whatever became of it: the new numbers are asked for anew only if they decide
  CHECK_FALSE(lost.is_open(0, 0));
}

TEST_CASE(
    "a known execution whose compile outcome is gone is compiled again only when it must run "
    "again") {
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  auto outcome = std::make_shared<domain::Outcome>(*test::executed(0.05));
  outcome->executed->outputs[0].max_rel_above = {0.05, 0.05, 0.05, 0.05, 0.05, 0.0, 0.0, 0.0};
  PlanRequest given = request(analysis, {target});
  given.options.tolerance.fp_abs_tol_frac = 0.003;
  Bench bench;
  const auto prepare = domain::prepare_key(analysis->layers[0], given.inputs, given.reference);
  const auto compile = domain::compile_key(analysis->layers[0], target->spec,
                                           target->spec.executors[0], target->tool);
  bench.known.outcomes[prepare] = test::prepared();
  bench.known.outcomes[domain::execute_key(prepare, compile, target->spec, target->tool)] = outcome;
  bench.add(given);
  const JobId compile_job = bench.job(Stage::Compile, "Conv_a");
  CHECK(bench.jobs[compile_job.value()].speculative);
  bench.answer(bench.job(Stage::Recompare, "Conv_a"), refused(Stage::Recompare));
  CHECK(bench.of_case(0, 0).how == How::Failed);
  CHECK(std::count(bench.dropped.begin(), bench.dropped.end(), compile_job) == 1);
}

TEST_CASE(
    "a failed stage is the verdict of all that hang on it; prepare speaks before compile whatever "
    "comes first") {
  for (const bool compile_first : {true, false}) {
    Bench bench;
    bench.add(request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv")}),
                      {chip("c", {"npu", "host"})}));
    const JobId prepare = bench.job(Stage::Prepare, "Conv_a");
    const JobId compile = bench.job(Stage::Compile, "Conv_a", "npu");
    const JobId execute = bench.job(Stage::Execute, "Conv_a", "npu");
    if (compile_first) {
      bench.answer(compile, refused(Stage::Compile, "compile says no"));
      bench.block(execute);
      CHECK(bench.settled.empty());
      CHECK(bench.book.waits_for(FileId(0), 0, 0) == prepare);
      bench.answer(prepare, refused(Stage::Prepare, "reference says no"));
    } else {
      bench.answer(prepare, refused(Stage::Prepare, "reference says no"));
      bench.block(execute);
      bench.answer(compile, refused(Stage::Compile, "compile says no"));
    }
    bench.block(bench.job(Stage::Execute, "Conv_a", "host"));
    REQUIRE(bench.settled.size() == 4);
    for (const CaseSettled& one : bench.settled) {
      CHECK(one.how == How::Failed);
      CHECK(one.judgement.status == Status::Error);
      CHECK(one.outcome->diagnostic.text == "reference says no");
    }
  }
}

TEST_CASE("a compile failure counts once prepare is known to work") {
  Bench bench;
  bench.add(request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})}));
  bench.answer(bench.job(Stage::Compile, "Conv_a"),
               test::failed(Stage::Compile, Ending::Crashed, "SIGSEGV"));
  bench.block(bench.job(Stage::Execute, "Conv_a"));
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  CHECK(bench.of_case(0, 0).outcome->diagnostic.text == "SIGSEGV");
  // Another model of the same run shares the crash; another run tries again.
  bench.add(request(model({layer("Conv_b", "conv")}), {chip("c", {"npu"})}));
  CHECK(bench.of_case(0, 0, FileId(1)).how == How::Failed);
  CHECK(bench.jobs.size() == 3);
  PlanRequest later = request(model({layer("Conv_c", "conv")}), {chip("c", {"npu"})});
  later.run = RunId(2);
  bench.add(later);
  CHECK(bench.is_open(0, 0, FileId(2)));
  CHECK(bench.count(Stage::Compile) == 2);
  CHECK(bench.count(Stage::Prepare) == 1);
}

TEST_CASE(
    "a stored refusal settles its cases at once when prepare is known too, else prepare runs "
    "first") {
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  Bench cold;
  cold.add(request(analysis, {target}));
  cold.answer(cold.job(Stage::Compile, "Conv_a"), refused(Stage::Compile));
  Bench half;
  half.known.outcomes = cold.known.outcomes;
  half.add(request(analysis, {target}));
  REQUIRE(half.jobs.size() == 1);
  CHECK(half.jobs[0].stage == Stage::Prepare);
  half.answer(half.jobs[0].id, test::prepared());
  CHECK(half.of_case(0, 0).outcome->stage == Stage::Compile);
  Bench warm;
  warm.known.outcomes = half.known.outcomes;
  warm.add(request(analysis, {target}));
  CHECK(warm.jobs.empty());
  CHECK(warm.of_case(0, 0).stored);
}

TEST_CASE("what infrastructure kept from a verdict is unsettled, with the reason") {
  Bench bench;
  bench.add(request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})}));
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.stick(bench.job(Stage::Compile, "Conv_a"), "the disk of three workers was full");
  bench.stick(bench.job(Stage::Execute, "Conv_a"), "something that it needs is unsettled");
  CHECK(bench.of_case(0, 0).how == How::Unsettled);
  CHECK(bench.of_case(0, 0).reason == "the disk of three workers was full");
}

TEST_CASE("outcomes that say nothing are not taken for knowledge") {
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  Bench bench;
  const auto prepare =
      domain::prepare_key(analysis->layers[0], {}, request(analysis, {target}).reference);
  bench.known.outcomes[prepare] = test::failed(Stage::Prepare, Ending::Infrastructure, "disk");
  bench.add(request(analysis, {target}));
  CHECK_FALSE(bench.jobs[bench.job(Stage::Prepare, "Conv_a").value()].known);
}

TEST_CASE("a layer with a problem is an error on each executor, and makes no jobs") {
  Bench bench;
  domain::Layer broken = layer("Conv_a", "conv");
  broken.problem = "the shape of input 'x' is unknown";
  PlanRequest given =
      request(model({broken, layer("Conv_b", "conv")}), {chip("c", {"npu", "host"})});
  given.options.skip_mode = true;
  given.options.dedup = Dedup::Loose;
  bench.add(given);
  for (const std::uint32_t executor : {0U, 1U}) {
    CHECK(bench.of_case(0, executor).how == How::Failed);
    CHECK(bench.of_case(0, executor).judgement.status == Status::Error);
    CHECK(bench.of_case(0, executor).outcome->diagnostic.text == broken.problem);
  }
  CHECK(bench.is_open(1, 0));  // it is no copy of the broken one
  CHECK(bench.count(Stage::Execute) == 2);
}

TEST_CASE(
    "executors and op types in the skip lists are skipped, what is not selected is not there at "
    "all") {
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv"), layer("Relu_b", "relu"), layer("Conv_c", "other")}),
              {chip("c", {"npu", "dsp", "host"})});
  given.options.skip_executors = {"dsp"};
  given.options.skip_ops = {"RELU"};
  given.options.executors = {"npu", "dsp"};
  given.options.layers = {"conv_A", "*_b"};
  const FileId file = bench.add(given);
  CHECK(bench.of_case(0, 1).skip == SkipReason::ExecutorInSkipList);
  CHECK(bench.of_case(1, 0).skip == SkipReason::OpInSkipList);
  CHECK(bench.of_case(1, 1).skip == SkipReason::ExecutorInSkipList);
  CHECK(bench.settled.size() == 3);
  CHECK(bench.count(Stage::Execute) == 1);
  CHECK(bench.book.counts(file).cases == 4);
  CHECK(bench.book.counts(file).layers == 2);
}

TEST_CASE(
    "skip mode: the first success in priority order ends a layer; lower executors are speculative "
    "until they are wanted") {
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv")}), {chip("c", {"npu", "dsp", "host"})});
  given.options.skip_mode = true;
  bench.add(given);
  CHECK_FALSE(bench.jobs[bench.job(Stage::Execute, "Conv_a", "npu").value()].speculative);
  CHECK_FALSE(bench.jobs[bench.job(Stage::Compile, "Conv_a", "npu").value()].speculative);
  CHECK_FALSE(bench.jobs[bench.job(Stage::Prepare, "Conv_a").value()].speculative);
  for (const char* lower : {"dsp", "host"}) {
    CHECK(bench.jobs[bench.job(Stage::Execute, "Conv_a", lower).value()].speculative);
    CHECK(bench.jobs[bench.job(Stage::Compile, "Conv_a", lower).value()].speculative);
  }
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  // host is early and works; nobody hears of it yet.
  bench.answer(bench.job(Stage::Execute, "Conv_a", "host"), test::executed(0));
  CHECK(bench.settled.empty());
  bench.answer(bench.job(Stage::Execute, "Conv_a", "npu"), test::executed(0.5));
  CHECK(bench.of_case(0, 0).judgement.status == Status::Difference);
  CHECK(bench.settled.size() == 1);
  const std::vector<JobId> expected{bench.job(Stage::Execute, "Conv_a", "dsp"),
                                    bench.job(Stage::Compile, "Conv_a", "dsp")};
  CHECK(bench.wanted == expected);
  bench.answer(bench.job(Stage::Execute, "Conv_a", "dsp"), test::executed(0));
  CHECK(bench.of_case(0, 1).judgement.status == Status::Success);
  CHECK(bench.of_case(0, 2).how == How::Skipped);
  CHECK(bench.of_case(0, 2).skip == SkipReason::AlreadyWorks);
  CHECK(bench.of_case(0, 2).skip_executor == 1);
}

TEST_CASE("skip mode: when a higher executor works, jobs that only lower ones wanted are dropped") {
  Bench bench;
  const auto target = chip("c", {"npu", "host"});
  PlanRequest given = request(model({layer("Conv_a", "conv"), layer("Relu_b", "relu")}), {target});
  given.options.skip_mode = true;
  bench.add(given);
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a", "npu"), test::compiled());
  bench.answer(bench.job(Stage::Execute, "Conv_a", "npu"), test::executed(0));
  const std::vector<JobId> expected{bench.job(Stage::Execute, "Conv_a", "host"),
                                    bench.job(Stage::Compile, "Conv_a", "host")};
  CHECK(bench.dropped == expected);
  bench.take(bench.book.on_settled(bench.job(Stage::Execute, "Conv_a", "host"),
                                   Answered{test::executed(0.5)}));  // late: nobody minds
  CHECK(bench.of_case(0, 1).how == How::Skipped);
  // Wanted by a run without skip mode: made anew.
  bench.add(request(model({layer("Conv_z", "conv")}), {target}));
  CHECK(bench.count(Stage::Compile) == 5);
}

TEST_CASE("skip mode: a job that another case wants firmly is not speculative, and not dropped") {
  Bench bench;
  const auto target = chip("c", {"npu", "host"});
  PlanRequest given = request(model({layer("Conv_a", "conv")}), {target});
  given.options.skip_mode = true;
  bench.add(given);
  bench.add(request(model({layer("Conv_z", "conv")}), {target}));
  CHECK(std::count(bench.wanted.begin(), bench.wanted.end(),
                   bench.job(Stage::Execute, "Conv_a", "host")) == 1);
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a", "npu"), test::compiled());
  bench.answer(bench.job(Stage::Execute, "Conv_a", "npu"), test::executed(0));
  CHECK(bench.dropped.empty());
  bench.answer(bench.job(Stage::Execute, "Conv_a", "host"), test::executed(0));
  CHECK(bench.of_case(0, 1, FileId(1)).how == How::Judged);
}

TEST_CASE(
    "skip mode: a success in the old report skips the layer, an old difference does not, recompute "
    "looks at neither") {
  for (const bool recompute : {false, true}) {
    Bench bench;
    PlanRequest given = request(model({layer("Conv_a", "conv"), layer("Relu_b", "relu")}),
                                {chip("c", {"npu", "host"})});
    given.options.skip_mode = true;
    given.options.recompute = recompute;
    OldReport old;
    old.statuses["Conv_a"] = {{"npu", Status::Difference}, {"host", Status::Success}};
    old.statuses["Relu_b"] = {{"npu", Status::Difference}};
    given.old = {old};
    bench.add(given);
    CHECK(bench.is_open(1, 0));
    if (recompute) {
      CHECK(bench.settled.empty());
    } else {
      CHECK(bench.of_case(0, 0).skip == SkipReason::AlreadyWorks);
      CHECK(bench.of_case(0, 0).skip_executor == 1);
      CHECK(bench.of_case(0, 1).how == How::Skipped);
    }
  }
}

TEST_CASE(
    "skip mode: an old success on an executor of the skip list does not count, its result leaves "
    "the report") {
  Bench bench;
  PlanRequest given = request(model({layer("Conv_a", "conv")}), {chip("c", {"npu", "host"})});
  given.options.skip_mode = true;
  given.options.skip_executors = {"host"};
  OldReport old;
  old.statuses["Conv_a"] = {{"host", Status::Success}};
  given.old = {old};
  bench.add(given);
  CHECK(bench.is_open(0, 0));
}

TEST_CASE("skip mode: stored verdicts of lower executors wait for the higher ones like any other") {
  const auto target = chip("c", {"npu", "host"});
  const auto analysis = model({layer("Conv_a", "conv")});
  Bench first;
  first.add(request(analysis, {target}));
  first.answer(first.job(Stage::Prepare, "Conv_a"), test::prepared());
  first.answer(first.job(Stage::Execute, "Conv_a", "host"), test::executed(0));
  Bench second;
  second.known.outcomes = first.known.outcomes;
  PlanRequest given = request(analysis, {target});
  given.options.skip_mode = true;
  second.add(given);
  CHECK(second.settled.empty());
  second.answer(second.job(Stage::Execute, "Conv_a", "npu"), test::executed(0.9));
  CHECK(second.of_case(0, 1).judgement.status == Status::Success);
  CHECK(second.of_case(0, 1).stored);
}

TEST_CASE("recompute takes nothing from the store, but runs equal work of the run once") {
  const auto target = chip("c", {"npu"});
  const auto analysis = model({layer("Conv_a", "conv")});
  Bench first;
  first.add(request(analysis, {target}));
  first.answer(first.job(Stage::Prepare, "Conv_a"), test::prepared());
  first.answer(first.job(Stage::Compile, "Conv_a"), test::compiled());
  first.answer(first.job(Stage::Execute, "Conv_a"), test::executed(0.5));
  PlanRequest given = request(analysis, {target});
  given.options.recompute = true;
  given.run = RunId(2);
  first.add(given);  // in the same coordinator
  CHECK(first.jobs.size() == 6);
  first.add(given);  // a second model of that run joins what is under way
  CHECK(first.jobs.size() == 6);
  CHECK(std::none_of(first.jobs.begin(), first.jobs.end(),
                     [](const PlannedJob& job) { return job.known; }));
  first.answer(first.of(Stage::Execute)[1].id, test::executed(0));
  CHECK(first.of_case(0, 0, FileId(1)).judgement.status == Status::Success);
  CHECK(first.of_case(0, 0, FileId(2)).judgement.status == Status::Success);
  first.add(given);  // a third finds it done
  CHECK(first.jobs.size() == 6);
  CHECK(first.of_case(0, 0, FileId(3)).judgement.status == Status::Success);
  CHECK_FALSE(first.of_case(0, 0, FileId(3)).stored);
}

TEST_CASE(
    "dedup copies between layers that differ in float constants; exact only where all is equal") {
  const std::vector<domain::Layer> layers{layer("Conv_a", "conv", "w1"),
                                          layer("Conv_b", "conv", "w2"),
                                          layer("Conv_c", "conv", "w1"), layer("Relu_d", "relu")};
  Bench loose;
  PlanRequest given = request(model(layers), {chip("c", {"npu"})});
  given.options.dedup = Dedup::Loose;
  loose.add(given);
  CHECK(loose.count(Stage::Execute) == 2);
  loose.answer(loose.job(Stage::Execute, "Conv_a"), test::executed(0.5));
  for (const std::uint32_t copy : {1U, 2U}) {
    CHECK(loose.of_case(copy, 0).how == How::Copied);
    CHECK(loose.of_case(copy, 0).source_layer == 0);
    CHECK(loose.of_case(copy, 0).judgement.status == Status::Difference);
    CHECK(loose.of_case(copy, 0).outcome == loose.of_case(0, 0).outcome);
  }
  CHECK(loose.of_case(0, 0).how == How::Judged);
  CHECK(loose.is_open(3, 0));

  Bench exact;
  given.options.dedup = Dedup::Exact;
  exact.add(given);
  CHECK(exact.count(Stage::Execute) == 3);
  exact.answer(exact.job(Stage::Execute, "Conv_a"), test::executed(0.5));
  CHECK(exact.is_open(1, 0));
  CHECK(exact.of_case(2, 0).how == How::Copied);
}

TEST_CASE("dedup does not copy where an edited tolerance would give another verdict") {
  Dedup dedup = Dedup::Loose;
  SUBCASE("loose") {}
  SUBCASE("exact") { dedup = Dedup::Exact; }
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv")}), {chip("c", {"npu"})});
  given.options.dedup = dedup;
  OldReport old;
  old.edits["Conv_b"] = {.fp_avg_tol = {}, .fp_max_tol = 0.9};
  given.old = {old};
  bench.add(given);
  CHECK(bench.count(Stage::Execute) == 1);  // the work is the same all the same
  bench.answer(bench.job(Stage::Execute, "Conv_a"), test::executed(0.5));
  CHECK(bench.of_case(0, 0).judgement.status == Status::Difference);
  CHECK(bench.of_case(1, 0).how == How::Judged);
  CHECK(bench.of_case(1, 0).judgement.status == Status::Success);
  CHECK(bench.of_case(1, 0).tolerance.fp_max_tol == 0.9);
}

TEST_CASE(
    "the source of copies is the first selected layer, and copies follow it in skip mode too") {
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv"), layer("Conv_c", "conv")}),
              {chip("c", {"npu", "host"})});
  given.options.dedup = Dedup::Loose;
  given.options.skip_mode = true;
  given.options.layers = {"Conv_b", "Conv_c"};
  bench.add(given);
  bench.answer(bench.job(Stage::Execute, "Conv_b", "npu"), test::executed(0.5));
  bench.answer(bench.job(Stage::Execute, "Conv_b", "host"), test::executed(0));
  CHECK(bench.of_case(2, 0).how == How::Copied);
  CHECK(bench.of_case(2, 0).source_layer == 1);
  CHECK(bench.of_case(2, 1).judgement.status == Status::Success);
  CHECK(bench.settled.size() == 4);
}

TEST_CASE(
    "a copy whose source is skipped for an old success gets the old results, or says that there "
    "are none") {
  Bench bench;
  PlanRequest given = request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv")}),
                              {chip("c", {"npu", "dsp", "host"})});
  given.options.dedup = Dedup::Loose;
  given.options.skip_mode = true;
  OldReport old;
  old.statuses["Conv_a"] = {{"npu", Status::Error}, {"host", Status::Success}};
  given.old = {old};
  bench.add(given);
  CHECK(bench.jobs.empty());
  CHECK(bench.settled.size() == 6);
  CHECK(bench.of_case(1, 0).how == How::CopiedOld);
  CHECK(bench.of_case(1, 0).judgement.status == Status::Error);
  CHECK(bench.of_case(1, 1).how == How::Skipped);
  CHECK(bench.of_case(1, 1).skip == SkipReason::DuplicateNotTested);
  CHECK(bench.of_case(1, 2).how == How::CopiedOld);
  CHECK(bench.of_case(1, 2).source_layer == 0);
}

TEST_CASE("a copy of an unsettled case is unsettled, and names it") {
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv"), layer("Conv_b", "conv")}), {chip("c", {"npu"})});
  given.options.dedup = Dedup::Loose;
  bench.add(given);
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a"), test::compiled());
  bench.stick(bench.job(Stage::Execute, "Conv_a"), "no worker");
  CHECK(bench.of_case(1, 0).how == How::Unsettled);
  CHECK(bench.of_case(1, 0).reason == "duplicate of Conv_a, which is unsettled: no worker");
}

TEST_CASE("timing is a job of its own after a comparison, exclusive, and never changes a verdict") {
  Bench bench;
  PlanRequest given =
      request(model({layer("Conv_a", "conv"), layer("Conv_b", "other"), layer("Conv_c", "third")}),
              {chip("c", {"npu"})});
  given.options.collect_timing = true;
  given.options.timing_runs = 3;
  bench.add(given);
  for (const char* id : {"Conv_a", "Conv_b", "Conv_c"}) {
    bench.answer(bench.job(Stage::Prepare, id), test::prepared());
    bench.answer(bench.job(Stage::Compile, id), test::compiled());
  }
  bench.answer(bench.job(Stage::Execute, "Conv_a"), test::executed(0));
  bench.answer(bench.job(Stage::Execute, "Conv_b"), test::executed(0.5));
  bench.answer(bench.job(Stage::Execute, "Conv_c"), refused(Stage::Execute));
  CHECK(bench.count(Stage::Time) == 2);
  CHECK(bench.of_case(2, 0).how == How::Failed);
  CHECK(bench.settled.size() == 1);
  const JobId time = bench.job(Stage::Time, "Conv_a");
  CHECK(bench.jobs[time.value()].exclusive);
  CHECK(bench.book.content(time).runs == 3);
  CHECK(bench.book.key(time) ==
        domain::time_key(bench.book.key(bench.job(Stage::Execute, "Conv_a")), "this cpu", 3));
  auto timed = std::make_shared<domain::Outcome>();
  timed->stage = Stage::Time;
  timed->ending = Ending::Done;
  timed->timed = domain::Timed{.runs_us = {5, 6, 7}, .what = "test"};
  bench.answer(time, timed);
  CHECK(bench.of_case(0, 0).timed == timed);
  CHECK(bench.of_case(0, 0).judgement.status == Status::Success);
  bench.stick(bench.job(Stage::Time, "Conv_b"), "no host");
  CHECK(bench.of_case(1, 0).judgement.status == Status::Difference);
  CHECK(bench.of_case(1, 0).timed == nullptr);
  // Known next time, with the times.
  Bench warm;
  warm.known.outcomes = bench.known.outcomes;
  given.options.layers = {"Conv_a"};
  warm.add(given);
  CHECK(warm.jobs.empty());
  CHECK(warm.of_case(0, 0).timed == timed);
  given.options.timing_runs = 5;
  Bench more;
  more.known.outcomes = bench.known.outcomes;
  more.add(given);
  CHECK(more.count(Stage::Time) == 1);
  CHECK(more.jobs.size() == 3);  // with what it needs, known
}

TEST_CASE("skip mode: timing of a success does not keep the lower executors waiting") {
  Bench bench;
  PlanRequest given = request(model({layer("Conv_a", "conv")}), {chip("c", {"npu", "host"})});
  given.options.collect_timing = true;
  given.options.skip_mode = true;
  bench.add(given);
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Compile, "Conv_a", "npu"), test::compiled());
  bench.answer(bench.job(Stage::Execute, "Conv_a", "npu"), test::executed(0));
  CHECK(bench.of_case(0, 1).how == How::Skipped);
  CHECK(bench.is_open(0, 0));
  bench.answer(bench.job(Stage::Time, "Conv_a"),
               test::failed(Stage::Time, Ending::TimedOut, "slow"));
  CHECK(bench.of_case(0, 0).judgement.status == Status::Success);
}

TEST_CASE("a lost blob is made again by whoever made it, the analysis included") {
  Bench bench;
  const PlannedJob analyze = bench.book.add_analyze(test::key_of("analyze"), /*known=*/true);
  bench.jobs.push_back(analyze);
  CHECK(bench.book.key(analyze.id) == test::key_of("analyze"));
  PlanRequest given = request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})});
  given.analyze = analyze.id;
  bench.add(given);
  const JobId prepare = bench.job(Stage::Prepare, "Conv_a");
  const JobId compile = bench.job(Stage::Compile, "Conv_a");
  const JobId execute = bench.job(Stage::Execute, "Conv_a");
  bench.answer(prepare, test::prepared());
  bench.answer(compile, test::compiled());
  CHECK(bench.book.producers_of(execute, {test::key_of("in")}) == std::vector<JobId>{prepare});
  CHECK(bench.book.producers_of(execute, {test::key_of("artifact"), test::key_of("out")}) ==
        std::vector<JobId>{prepare, compile});
  CHECK(bench.book.producers_of(prepare, {test::key_of("module conv/")}) ==
        std::vector<JobId>{analyze.id});
  CHECK(bench.book.producers_of(execute, {test::key_of("nobody's")}).empty());
  CHECK(bench.book.producers_of(analyze.id, {test::key_of("in")}).empty());
  // They answer again; the case goes on.
  bench.answer(prepare, test::prepared());
  bench.answer(execute, test::executed(0));
  CHECK(bench.of_case(0, 0).judgement.status == Status::Success);
}

TEST_CASE("what cannot be made again after a loss is the failure of all that need it") {
  Bench bench;
  bench.add(request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})}));
  bench.answer(bench.job(Stage::Prepare, "Conv_a"), test::prepared());
  bench.answer(bench.job(Stage::Prepare, "Conv_a"),
               test::failed(Stage::Prepare, Ending::Crashed, "now it crashes"));
  bench.block(bench.job(Stage::Execute, "Conv_a"));
  CHECK(bench.of_case(0, 0).outcome->diagnostic.text == "now it crashes");
  Bench blocked;
  blocked.add(request(model({layer("Conv_a", "conv")}), {chip("c", {"npu"})}));
  blocked.block(blocked.job(Stage::Prepare, "Conv_a"));  // its analysis could not be made again
  blocked.block(blocked.job(Stage::Execute, "Conv_a"));
  CHECK(blocked.of_case(0, 0).how == How::Failed);
}

TEST_CASE("a cancelled report's cases are not settled, and jobs that only it wanted are dropped") {
  Bench bench;
  const auto target = chip("c", {"npu"});
  const FileId first =
      bench.add(request(model({layer("Conv_a", "conv"), layer("Relu_b", "relu")}), {target}));
  bench.add(request(model({layer("Conv_z", "conv")}), {target}));
  bench.take(bench.book.cancel(first));
  CHECK(bench.settled.empty());
  CHECK(bench.dropped.size() == 3);
  bench.answer(bench.job(Stage::Execute, "Conv_a"), test::executed(0));
  CHECK(bench.settled.size() == 1);
  CHECK(bench.is_open(0, 0, first));
}

TEST_CASE(
    "edited tolerances come before flags, flags before the chip file; the fraction is never "
    "edited") {
  Bench bench;
  const auto target = chip("c", {"npu", "host"});
  target->spec.executors[0].tolerance = {0.1, 0.2, 0.3};
  target->spec.executors[1].tolerance = {0.4, 0.5, 0.6};
  PlanRequest given = request(model({layer("Conv_a", "conv"), layer("Relu_b", "relu")}), {target});
  given.options.tolerance.fp_max_tol = 0.7;
  OldReport old;
  old.edits["Conv_a"] = {.fp_avg_tol = {}, .fp_max_tol = 0.8};
  given.old = {old};
  const FileId file = bench.add(given);
  CHECK(bench.book.tolerance(file, 0, 0) == domain::Tolerance{0.1, 0.8, 0.3});
  CHECK(bench.book.tolerance(file, 0, 1) == domain::Tolerance{0.4, 0.8, 0.6});
  CHECK(bench.book.tolerance(file, 1, 1) == domain::Tolerance{0.4, 0.7, 0.6});
}

TEST_CASE("a dry run tells what is known, what would run and how long that may take") {
  test::KnownOutcomes known;
  const auto target = chip("c", {"npu", "host"});
  const auto analysis = model({layer("Conv_a", "conv"), layer("Relu_b", "relu")});
  {
    Bench warm;
    warm.add(request(analysis, {target}));
    warm.answer(warm.job(Stage::Prepare, "Conv_a"), test::prepared(400));
    warm.answer(warm.job(Stage::Compile, "Conv_a", "npu"), test::compiled(2000));
    warm.answer(warm.job(Stage::Execute, "Conv_a", "npu"), test::executed(0, 100));
    known.outcomes = warm.known.outcomes;
  }
  CaseBook book(known);
  std::array<std::optional<std::int64_t>, domain::kStageNumbers> typical{};
  typical[static_cast<std::size_t>(Stage::Compile)] = 9000;
  book.set_typical_times(typical);
  const auto added = book.add(request(analysis, {target}));
  REQUIRE(added.has_value());
  const Forecast told = forecast(*added, 2);
  CHECK(told.cases == 4);
  CHECK(told.known == 1);
  CHECK(told.open == 3);
  CHECK(told.jobs[static_cast<std::size_t>(Stage::Prepare)] == 1);
  CHECK(told.jobs[static_cast<std::size_t>(Stage::Compile)] == 3);
  CHECK(told.jobs[static_cast<std::size_t>(Stage::Execute)] == 3);
  CHECK(told.without_estimate == 2);  // executing on host: nobody ever did
  // Prepare as the other one took, compile as usual, execute on npu as the other one.
  CHECK(told.work_us == 400 + 3 * 9000 + 100);
  CHECK(told.expected_us == told.work_us / 2);
  Forecast twice = told;
  twice += told;
  CHECK(twice.cases == 8);
  CHECK(twice.work_us == 2 * told.work_us);
}

TEST_CASE(
    "ten thousand layers are planned in well under a second, cold and warm, in few bytes a case") {
  std::vector<domain::Layer> layers;
  for (int i = 0; i < 10'000; ++i) {
    layers.push_back(layer("Conv_" + std::to_string(i), "kind" + std::to_string(i)));
  }
  const auto analysis = model(std::move(layers));
  Bench bench;
  const auto begin = std::chrono::steady_clock::now();
  auto added = bench.book.add(request(analysis, {chip("c", {"npu", "host"})}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  REQUIRE(added.has_value());
  CHECK(added->turn.jobs.size() == 50'000);
  CHECK(took.count() < 3.0);  // a bound that holds under sanitizers; tests/bench has the figure
  CHECK(bench.book.memory_bytes() / 20'000 <= 150);
}

TEST_CASE("a chip without executors is refused") {
  Bench bench;
  CHECK_FALSE(
      bench.book.add(request(model({layer("Conv_a", "conv")}), {chip("c", {})})).has_value());
  CHECK(bench.book.add(request(model({}), {chip("c", {"npu"})})).has_value());
}

TEST_CASE("reasons for skipping are those of the manual") {
  CaseSettled one;
  one.how = How::Skipped;
  one.skip = SkipReason::ExecutorInSkipList;
  CHECK(skip_text(one, "npu", "", "") == "executor in the skip list");
  one.skip = SkipReason::OpInSkipList;
  CHECK(skip_text(one, "npu", "", "") == "op type in the skip list");
  one.skip = SkipReason::AlreadyWorks;
  CHECK(skip_text(one, "host", "npu", "") == "layer already works with npu");
  one.skip = SkipReason::DuplicateNotTested;
  CHECK(skip_text(one, "npu", "", "Conv_a") ==
        "duplicate of Conv_a, but that one was not tested on NPU");
  one.how = How::Copied;
  CHECK(skip_text(one, "npu", "", "Conv_a") == "duplicate of Conv_a, result copied");
}
