#include "shared/protocol/codec.h"

#include <doctest/doctest.h>

#include <msgpack.hpp>
#include <random>
#include <sstream>

using namespace layerfarm;
using namespace layerfarm::protocol;

namespace {

base::Digest digest(int seed) { return base::digest_of("blob " + std::to_string(seed)); }

domain::Layer a_layer() {
  domain::Layer layer;
  layer.id = "Conv_c1";
  layer.op_type = "Conv";
  layer.node_name = "n/1";
  layer.orig_index = 3;
  layer.node_index = 5;
  layer.quantized = false;
  layer.quantize_note = "no kernel";
  layer.signature = digest(1);
  layer.loose_signature = digest(2);
  layer.module = {"onnx", digest(3), {{"w.bin", digest(4), 12}}};
  layer.wide_module = domain::LayerModule{"onnx", digest(5), {}};
  layer.inputs = {{{domain::DType::Float32, {1, 3, 8, 8}}, -40, 40},
                  {{domain::DType::Int64, {}}, 0, 7}};
  layer.input_names = {"x", "i"};
  layer.draw_order = {1, 0};
  layer.outputs = {{domain::DType::BFloat16, {1, 4}}};
  layer.output_names = {"y"};
  layer.open_outputs = {0};
  layer.mac_count = 6912;
  layer.mac_breakdown = R"([{"a":1}])";
  return layer;
}

domain::Outcome an_execution() {
  domain::Outcome outcome;
  outcome.ir_dump = digest(8);
  outcome.stage = domain::Stage::Execute;
  outcome.ending = domain::Ending::Done;
  outcome.took_us = 1234;
  outcome.tool = "iree 3.13.0";
  domain::Comparison comparison;
  comparison.dtype = domain::DType::Float32;
  comparison.total = 4096;
  comparison.max_abs = 0.25;
  comparison.max_rel = 0.125;
  comparison.cosine = 0.5;
  comparison.num_diffs = 4;
  comparison.counted_at = {0.01, 0.02, 0.001};
  comparison.rel_histogram[3] = 9;
  comparison.max_rel_above[1] = 0.125;
  outcome.executed = domain::Executed{{comparison}, 1, {digest(9)}, 77, "note"};
  return outcome;
}

Lease a_lease() {
  Lease lease;
  lease.chip.name = "host-cpu";
  lease.chip.toolchain = "iree";
  lease.chip.executors = {
      {"llvm-cpu", {0.01, 0.01, 0.001}, domain::Evidence::Hardware, false, {{"k", "v"}}}};
  domain::Layer layer = a_layer();
  layer.orig_index = 0;  // what the report alone needs is not sent
  layer.node_index.reset();
  layer.quantized.reset();
  layer.quantize_note.clear();
  layer.loose_signature = {};
  layer.mac_count = 0;
  layer.mac_breakdown = "[]";
  lease.layers = {{std::make_shared<const domain::Layer>(std::move(layer))}};
  lease.jobs.resize(2);
  lease.jobs[0] = {AttemptId(7), domain::Stage::Compile, 0, 0};
  lease.jobs[1] = {AttemptId(8), domain::Stage::Execute, 0, 0};
  lease.jobs[1].compile_job = 0;
  lease.analyze = {{"/m.onnx", {{"batch", 2}}}};
  return lease;
}

Lease a_whole_run() {
  Lease lease;
  lease.chip.name = "SL2610";
  lease.jobs.resize(1);
  lease.jobs[0] = {AttemptId(7), domain::Stage::Whole, 0, 0};
  lease.whole = {{digest(6), {"nss", "", "host"}, true}};
  return lease;
}

template <typename Variant, typename Decode>
void round_trip(const Variant& message, Decode decode) {
  const auto back = decode(message_type(message), encode(message));
  REQUIRE_MESSAGE(back.has_value(), "type ", message_type(message));
  CHECK(*back == message);
}

}  // namespace

TEST_CASE("every message comes back as it was") {
  Hello hello;
  hello.software = "layerfarm-worker 0.1.0";
  hello.features = {"timing"};
  hello.cores = {0, 1};
  hello.abilities = {
      {"iree", digest(1), true, {"3.13.0", digest(2), "avx2"}, "", "", true, true, 16, true}};
  hello.running = {AttemptId(5)};
  for (const FromWorker& message :
       {FromWorker(hello), FromWorker(Heartbeat{AttemptId(3), "waits", 20, "rain"}),
        FromWorker(Started{{AttemptId(1)}}), FromWorker(Outcomes{{{AttemptId(4), an_execution()}}}),
        FromWorker(Goodbye{"done"})}) {
    round_trip(message, decode_from_worker);
  }
  for (const FromCoordinator& message :
       {FromCoordinator(Welcome{1, 2, 3, 4}), FromCoordinator(Reject{"no"}),
        FromCoordinator(HelloAgain{}), FromCoordinator(a_lease()), FromCoordinator(a_whole_run()),
        FromCoordinator(OutcomesKept{{AttemptId(9)}}), FromCoordinator(Cancel{{AttemptId(2)}}),
        FromCoordinator(Stop{true})}) {
    round_trip(message, decode_from_coordinator);
  }
}

TEST_CASE("message types have the numbers that the protocol page lists") {
  CHECK(message_type(FromWorker(Hello{})) == 1);
  CHECK(message_type(FromWorker(Heartbeat{})) == 2);
  CHECK(message_type(FromWorker(Started{})) == 3);
  CHECK(message_type(FromWorker(Outcomes{})) == 4);
  CHECK(message_type(FromWorker(Goodbye{})) == 5);
  CHECK(message_type(FromCoordinator(Welcome{})) == 101);
  CHECK(message_type(FromCoordinator(Reject{})) == 102);
  CHECK(message_type(FromCoordinator(HelloAgain{})) == 103);
  CHECK(message_type(FromCoordinator(Lease{})) == 104);
  CHECK(message_type(FromCoordinator(OutcomesKept{})) == 105);
  CHECK(message_type(FromCoordinator(Cancel{})) == 106);
  CHECK(message_type(FromCoordinator(Stop{})) == 107);
}

TEST_CASE("a header comes back as it was, and foreign ones are refused") {
  const Header header{1, 0, 104, 0x1122334455667788ULL, 9};
  const base::Bytes bytes = encode_header(header);
  REQUIRE(bytes.size() == kHeaderBytes);
  CHECK(bytes.substr(0, 4) == "LFM1");
  CHECK(*decode_header(bytes) == header);
  CHECK(!decode_header(bytes.substr(1)).has_value());
  base::Bytes other = bytes;
  other[0] = 'X';
  CHECK(!decode_header(other).has_value());
  other = bytes;
  other[4] = 2;
  REQUIRE(!decode_header(other).has_value());
  CHECK(decode_header(other).error().code == base::ErrorCode::Incompatible);
}

TEST_CASE("an unknown message type is told apart from damaged bytes") {
  CHECK(decode_from_worker(77, "").error().code == base::ErrorCode::Incompatible);
  CHECK(decode_from_worker(1, "").error().code == base::ErrorCode::InvalidInput);
  CHECK(decode_from_worker(104, encode(FromCoordinator(a_lease()))).error().code ==
        base::ErrorCode::Incompatible);
}

TEST_CASE("unknown keys are skipped and missing required ones named") {
  std::stringstream extra;
  msgpack::packer<std::stringstream> packer(extra);
  packer.pack_map(2);
  packer.pack(std::string("reason"));
  packer.pack(std::string("because"));
  packer.pack(std::string("from the future"));
  packer.pack(std::vector<int>{1, 2});
  const auto reject = decode_from_coordinator(102, extra.str());
  REQUIRE(reject.has_value());
  CHECK(std::get<Reject>(*reject).reason == "because");

  std::stringstream empty;
  msgpack::packer<std::stringstream>(empty).pack_map(0);
  const auto missing = decode_from_coordinator(102, empty.str());
  REQUIRE(!missing.has_value());
  CHECK(missing.error().message.find("reason") != std::string::npos);
}

TEST_CASE("the outcome of a whole model's run comes back as it was") {
  domain::Outcome outcome = an_execution();
  const domain::Comparison comparison = outcome.executed->outputs[0];
  outcome.executed.reset();
  outcome.stage = domain::Stage::Whole;
  CHECK(!decode_outcome(encode_outcome(outcome)).has_value());  // Done without its result
  outcome.whole = domain::WholeRun{.outputs = {comparison},
                                   .expected_outputs = 1,
                                   .segments = {{.executor = "htp",
                                                 .operators = 3,
                                                 .results = {"y"},
                                                 .boundary = {comparison},
                                                 .run_us = 7,
                                                 .note = "n"}},
                                   .bytes_crossed = 64,
                                   .reference = "onnxruntime 1.32.0"};
  const auto back = decode_outcome(encode_outcome(outcome));
  REQUIRE(back.has_value());
  CHECK(*back == outcome);
}

TEST_CASE("a finished job without its result is refused") {
  domain::Outcome outcome = an_execution();
  outcome.executed.reset();
  CHECK(!decode_outcome(encode_outcome(outcome)).has_value());
  outcome.ending = domain::Ending::Refused;
  CHECK(decode_outcome(encode_outcome(outcome)).has_value());
}

TEST_CASE("a lease whose indices point outside its lists is refused") {
  for (int fault = 0; fault < 8; ++fault) {
    Lease lease = a_lease();
    if (fault == 0) lease.jobs[1].compile_job = 1;
    if (fault == 1) lease.jobs[1].prepared = 0;
    if (fault == 2) lease.jobs[0].layer = 1;
    if (fault == 3) lease.jobs[0].executor = 1;
    if (fault == 4) lease.jobs[1].artifact = -2;
    if (fault == 5) lease.jobs[0].stage = static_cast<domain::Stage>(99);
    if (fault == 6) lease.jobs[0] = {AttemptId(7), domain::Stage::Analyze, 1, 0};
    if (fault == 7) lease.jobs[0] = {AttemptId(7), domain::Stage::Whole, 0, 0};
    CAPTURE(fault);
    CHECK(!decode_from_coordinator(104, encode(FromCoordinator(lease))).has_value());
  }
}

TEST_CASE("cut and flipped bytes give an error or a message, never a crash") {
  const base::Bytes good = encode(FromCoordinator(a_lease()));
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(!decode_from_coordinator(104, good.substr(0, size)).has_value());
  }
  constexpr unsigned kSeed = 20261130;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 5000; ++round) {
    base::Bytes bytes = good;
    for (int flips = 0; flips < 3; ++flips)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    [[maybe_unused]] const auto decoded = decode_from_coordinator(104, bytes);
  }
}

TEST_CASE("numbers of any size and kind come back") {
  for (const double number : {0.0, 0.5, -3.0, 1.8e19, 1.0e300, -1.0e300, 9007199254740993.0}) {
    domain::Outcome outcome = an_execution();
    outcome.executed->outputs[0].max_expected = number;
    outcome.executed->outputs[0].worst_actual = -number;
    const auto back = decode_outcome(encode_outcome(outcome));
    REQUIRE_MESSAGE(back.has_value(), number);
    CHECK(*back == outcome);
  }
}

TEST_CASE("an analysis comes back as it was") {
  domain::ModelAnalysis analysis;
  analysis.model_digest = digest(1);
  analysis.files = {{"m.onnx", digest(1), 5}};
  analysis.dim_names = {"batch"};
  analysis.layers = {a_layer()};
  analysis.segments = {{"htp", 3, {"Conv_a", "Relu_b", "Add_c"}}};
  analysis.locations = {{17, 10, "Conv"}};
  analysis.notes = {"n"};
  analysis.subgraph = {2, 5};
  analysis.skipped = "why";
  const auto back = decode_analysis(encode_analysis(analysis));
  REQUIRE(back.has_value());
  CHECK(*back == analysis);
}

TEST_CASE("a request to analyze comes back as it was, and unknown numbers are refused") {
  domain::AnalyzeRequest request{.model_path = "/m.onnx", .dims = {{"batch", 2}}};
  CHECK(*decode_analyze_request(encode_analyze_request(request)) == request);
  request.convert = {.bf16 = true, .int32 = true};
  request.subgraph = {"Conv_a", "Relu_b"};
  request.quantize = {.format = domain::QuantFormat::Hybrid,
                      .per_channel = true,
                      .full_integer = true,
                      .samples = 3,
                      .calibration = digest(4),
                      .calibration_path = "/samples"};
  request.unit = domain::LayerUnit::Qdq;
  request.assignment = {"htp", "host"};
  CHECK(*decode_analyze_request(encode_analyze_request(request)) == request);
  domain::AnalyzeRequest wrong = request;
  wrong.unit = static_cast<domain::LayerUnit>(9);
  CHECK(!decode_analyze_request(encode_analyze_request(wrong)).has_value());
  wrong = request;
  wrong.quantize->format = static_cast<domain::QuantFormat>(9);
  CHECK(!decode_analyze_request(encode_analyze_request(wrong)).has_value());
}
