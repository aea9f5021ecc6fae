#include "shared/domain/keys.h"

#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "shared/domain/dtype.h"
#include "shared/domain/outcome.h"

using namespace layerfarm;
using namespace layerfarm::domain;
using base::Digest;
using base::digest_of;

namespace {

/// All that a key of a case is made of.
struct Work {
  Layer layer;
  InputSet inputs;
  ToolIdentity reference{"1.32.0", digest_of("reference"), "avx2"};
  ChipSpec chip;
  ExecutorSpec executor;
  ToolIdentity tool{"3.13.0", digest_of("tool"), "avx2"};

  Work() {
    layer.signature = digest_of("layer");
    layer.inputs = {{{DType::Float32, {1, 8}}, -40, 40}, {{DType::Int64, {2}}, 0, 3}};
    layer.input_names = {"x", "i"};
    layer.draw_order = {0, 1};
    chip.toolchain = "iree";
    chip.target = "host";
    chip.options = {{"batch", "4"}};
    executor.name = "llvm-cpu";
    executor.options = {{"backend", "llvm-cpu"}};
  }
  [[nodiscard]] Digest prepare() const { return prepare_key(layer, inputs, reference); }
  [[nodiscard]] Digest compile() const { return compile_key(layer, chip, executor, tool); }
  [[nodiscard]] Digest execute() const { return execute_key(prepare(), compile(), chip, tool); }
};

using Change = std::function<void(Work&)>;

/// Each change, by itself, gives a key that no other one gives.
template <typename Key>
void each_changes(const Key& key, const std::vector<Change>& changes) {
  std::set<std::string> seen = {key(Work()).hex()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Work work;
    changes[i](work);
    CAPTURE(i);
    CHECK(seen.insert(key(work).hex()).second);
  }
}

template <typename Key>
void none_changes(const Key& key, const std::vector<Change>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Work work;
    changes[i](work);
    CAPTURE(i);
    CHECK(key(work) == key(Work()));
  }
}

const std::vector<Change> kInputs = {[](Work& w) { w.layer.signature = digest_of("another"); },
                                     [](Work& w) { w.layer.draw_order = {1, 0}; },
                                     [](Work& w) { w.layer.open_outputs = {0}; },
                                     [](Work& w) { w.layer.open_outputs = {1}; },
                                     [](Work& w) { w.layer.inputs[0].lo = 0; },
                                     [](Work& w) { w.layer.inputs[0].hi = 80; },
                                     [](Work& w) { w.layer.inputs[1].values = {0, 2}; },
                                     [](Work& w) { w.inputs.seed = 1; },
                                     [](Work& w) { w.inputs.folder = digest_of("folder"); },
                                     [](Work& w) { w.reference.version = "1.33.0"; },
                                     [](Work& w) { w.reference.files = digest_of("patched"); },
                                     [](Work& w) { w.reference.cpu = "avx512"; }};

const std::vector<Change> kTarget = {[](Work& w) { w.chip.toolchain = "ort-ep"; },
                                     [](Work& w) { w.chip.target = "SM8550"; },
                                     [](Work& w) { w.chip.options["batch"] = "8"; },
                                     [](Work& w) { w.chip.options["more"] = ""; },
                                     [](Work& w) { w.chip.options.clear(); },
                                     [](Work& w) { w.executor.name = "vmvx"; },
                                     [](Work& w) { w.executor.options["backend"] = "vmvx"; },
                                     [](Work& w) { w.tool.version = "3.14.0"; },
                                     [](Work& w) { w.tool.files = digest_of("patched"); },
                                     [](Work& w) { w.tool.cpu = "avx512"; }};

// Words and numbers for people: work stays equal work.
const std::vector<Change> kWords = {[](Work& w) { w.layer.id = "Relu_y"; },
                                    [](Work& w) { w.layer.orig_index = 7; },
                                    [](Work& w) { w.layer.input_names = {"a", "b"}; },
                                    [](Work& w) { w.inputs.path = "/elsewhere"; },
                                    [](Work& w) { w.chip.name = "another file"; },
                                    [](Work& w) { w.chip.notes = "measured"; },
                                    [](Work& w) { w.chip.limits.run_timeout_ms = 1; },
                                    [](Work& w) { w.executor.tolerance.fp_max_tol = 1; },
                                    [](Work& w) { w.executor.evidence = Evidence::StandIn; }};

}  // namespace

TEST_CASE("prepare: what is fed and who makes the reference, and no chip") {
  const auto key = [](const Work& w) { return w.prepare(); };
  each_changes(key, kInputs);
  none_changes(key, kTarget);
  none_changes(key, kWords);
}

TEST_CASE("prepare: with a folder of inputs, names decide what is taken") {
  const auto key = [](Work w) {
    w.inputs.folder = digest_of("folder");
    return w.prepare();
  };
  each_changes(key, {[](Work& w) { w.layer.input_names[0] = "another"; }});
}

TEST_CASE("compile: the layer and the target, and no inputs") {
  const auto key = [](const Work& w) { return w.compile(); };
  each_changes(key, kTarget);
  none_changes(key, std::vector<Change>(kInputs.begin() + 1, kInputs.end()));
  none_changes(key, kWords);
}

TEST_CASE("execute: all of it, and the hardware it runs on") {
  const auto key = [](const Work& w) { return w.execute(); };
  std::vector<Change> all = kInputs;
  all.insert(all.end(), kTarget.begin(), kTarget.end());
  all.emplace_back([](Work& w) { w.chip.hw_type = "board"; });
  each_changes(key, all);
  none_changes(key, kWords);
}

TEST_CASE(
    "analyze: the file's content, the dims asked for, and the reader; not where the file lies") {
  const ToolIdentity reader{"1.0.0", digest_of("reader"), ""};
  const Digest file = digest_of("model");
  const AnalyzeRequest plain{.model_path = "/a/model.onnx"};
  std::set<std::string> seen = {analyze_key(file, plain, reader).hex()};
  CHECK(seen.insert(analyze_key(digest_of("other"), plain, reader).hex()).second);
  CHECK(seen.insert(analyze_key(file, {.dims = {{"batch", 2}}}, reader).hex()).second);
  CHECK(seen.insert(analyze_key(file, {.dims = {{"batch", 3}}}, reader).hex()).second);
  CHECK(seen.insert(analyze_key(file, {.dims = {{"width", 2}}}, reader).hex()).second);
  CHECK(seen.insert(analyze_key(file, plain, {"1.0.1", reader.files, ""}).hex()).second);
  const std::vector<std::function<void(AnalyzeRequest&)>> changes = {
      [](AnalyzeRequest& r) { r.convert.bf16 = true; },
      [](AnalyzeRequest& r) { r.convert.int32 = true; },
      [](AnalyzeRequest& r) { r.subgraph = {"a", "b"}; },
      [](AnalyzeRequest& r) { r.subgraph = {"ab", ""}; },
      [](AnalyzeRequest& r) { r.quantize.emplace(); },
      [](AnalyzeRequest& r) { r.quantize.emplace().format = QuantFormat::Hybrid; },
      [](AnalyzeRequest& r) { r.quantize.emplace().per_channel = true; },
      [](AnalyzeRequest& r) { r.quantize.emplace().full_integer = true; },
      [](AnalyzeRequest& r) { r.quantize.emplace().samples = 1; },
      [](AnalyzeRequest& r) { r.quantize.emplace().calibration = digest_of("folder"); },
      [](AnalyzeRequest& r) { r.unit = LayerUnit::Qdq; },
      [](AnalyzeRequest& r) { r.assignment = {"a", "b"}; },
      [](AnalyzeRequest& r) { r.assignment = {"ab"}; }};
  for (const auto& change : changes) {
    AnalyzeRequest changed = plain;
    change(changed);
    CHECK(seen.insert(analyze_key(file, changed, reader).hex()).second);
  }
  CHECK(!seen.insert(analyze_key(file, {.model_path = "/b/renamed.onnx"}, reader).hex()).second);
}

TEST_CASE("recompare: the run and each tolerance; time: the run, the place and how often") {
  const Digest run = digest_of("run");
  const Tolerance plain{0.01, 0.01, 0.02};
  std::set<std::string> seen = {recompare_key(run, plain).hex()};
  CHECK(seen.insert(recompare_key(digest_of("other"), plain).hex()).second);
  CHECK(seen.insert(recompare_key(run, {0.02, 0.01, 0.02}).hex()).second);
  CHECK(seen.insert(recompare_key(run, {0.01, 0.02, 0.02}).hex()).second);
  CHECK(seen.insert(recompare_key(run, {0.01, 0.01, 0.03}).hex()).second);
  CHECK(seen.insert(time_key(run, "cpu", 5).hex()).second);
  CHECK(seen.insert(time_key(run, "cpu", 6).hex()).second);
  CHECK(seen.insert(time_key(run, "board", 5).hex()).second);
  CHECK(seen.insert(time_key(digest_of("other"), "cpu", 5).hex()).second);
}

TEST_CASE("every stage and ending has a name of its own") {
  std::set<std::string_view> names;
  for (int i = 1; i <= 7; ++i) CHECK(names.insert(stage_name(static_cast<Stage>(i))).second);
  for (int i = 1; i <= 9; ++i) CHECK(names.insert(ending_name(static_cast<Ending>(i))).second);
  CHECK(!names.contains("unknown"));
}

TEST_CASE("formats of quantization and units of layers go by their names") {
  for (const auto format : {QuantFormat::Qdq, QuantFormat::QOperator, QuantFormat::Hybrid})
    CHECK(quant_format_from_name(quant_format_name(format)) == format);
  for (const auto unit : {LayerUnit::Node, LayerUnit::Qdq})
    CHECK(layer_unit_from_name(layer_unit_name(unit)) == unit);
  CHECK(!quant_format_from_name("QDQ"));
  CHECK(!layer_unit_from_name(""));
  CHECK(layer_unit_name(static_cast<LayerUnit>(0)) == "unknown");
}

TEST_CASE("element types: names, MLIR names, sizes") {
  std::set<std::string> names;
  for (int i = 1; i <= 16; ++i) {
    const auto type = static_cast<DType>(i);
    CAPTURE(i);
    CHECK(names.insert(dtype_name(type)).second);
    CHECK(!(is_floating(type) && is_integer(type)));
    // What can be fed has a size, what has an MLIR name can be fed.
    if (!dtype_mlir(type).empty()) CHECK(dtype_size(type) > 0);
  }
  CHECK(dtype_name(DType::Float16) == "float16");
  CHECK(dtype_mlir(DType::BFloat16) == "bf16");
  CHECK(dtype_mlir(DType::UInt8) == "ui8");
  CHECK(dtype_mlir(DType::Bool) == "i1");
  CHECK(dtype_size(DType::Float64) == 8);
  CHECK(is_floating(DType::BFloat16));
  CHECK(is_integer(DType::UInt64));
  CHECK(!is_integer(DType::Bool));
  const auto float8 = static_cast<DType>(17);
  CHECK(dtype_name(float8) == "type_17");
  CHECK(dtype_mlir(float8).empty());
  CHECK(dtype_size(float8) == 0);
  CHECK(!is_floating(float8));
  CHECK(!is_integer(float8));
}
