#include "coordinator/plan/plan_request.h"

#include <doctest/doctest.h>

#include "tests/support/coordinator/planning.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::plan;

namespace {

std::string chosen(const std::vector<std::string>& patterns) {
  const std::vector<domain::Layer> layers{test::layer("Conv_a", ""), test::layer("Conv_ab", ""),
                                          test::layer("Relu_[x]", "")};
  std::string out;
  for (const bool one : choose_layers(layers, patterns)) out.push_back(one ? '1' : '0');
  return out;
}

}  // namespace

TEST_CASE(
    "layers are chosen as edit chooses them: ALL, a shell pattern, the exact id, else every id "
    "that contains the text") {
  CHECK(chosen({}) == "111");
  CHECK(chosen({"ALL"}) == "111");
  CHECK(chosen({"all", "nothing"}) == "111");
  CHECK(chosen({"conv_A"}) == "100");
  CHECK(chosen({"Conv"}) == "110");
  CHECK(chosen({"conv_?b"}) == "010");
  CHECK(chosen({"*_a*"}) == "110");
  CHECK(chosen({"relu_[x]"}) == "001");
  CHECK(chosen({"b", "relu"}) == "011");
  CHECK(chosen({"nothing"}) == "000");
}

TEST_CASE("a request's options come back from their stored form, and damaged forms are an Error") {
  const auto target = test::chip("c", {"npu"});
  target->needs_prepare = false;
  target->batch = 16;
  target->tool.files = test::key_of("files");
  target->tool.cpu = "avx2";
  PlanRequest request = test::request(test::model({}), {target});
  request.options = {.skip_mode = true,
                     .recompute = true,
                     .dedup = Dedup::Exact,
                     .skip_executors = {"a"},
                     .skip_ops = {"B", "C"},
                     .executors = {"npu"},
                     .layers = {"Conv_\"x\" ;", "\xff"},
                     .collect_timing = true,
                     .timing_runs = 5,
                     .tolerance = {.fp_avg_tol = 0.1, .fp_max_tol = {}, .fp_abs_tol_frac = 1e-3}};
  request.inputs = {.seed = 99, .folder = test::key_of("folder"), .path = "/data"};
  const std::string text = request_json(request, *target);
  auto back = request_from_json(text);
  REQUIRE(back.has_value());
  CHECK(back->options.layers[0] == request.options.layers[0]);
  request.options.layers.pop_back();
  back->options.layers.pop_back();
  CHECK(back->options == request.options);
  CHECK(back->inputs == request.inputs);
  CHECK(back->reference == request.reference);
  back->chip.spec = target->spec;
  CHECK(back->chip == *target);

  for (const auto dedup : {Dedup::Off, Dedup::Loose}) {
    request.options.dedup = dedup;
    CHECK(request_from_json(request_json(request, *target))->options.dedup == dedup);
  }
  for (std::size_t cut = 0; cut < text.size(); cut += 7)
    CHECK_FALSE(request_from_json(text.substr(0, cut)).has_value());
  CHECK_FALSE(request_from_json("{}").has_value());
  CHECK_FALSE(request_from_json("[1]").has_value());
}
