#include "worker/ort/request.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace layerfarm;
using namespace layerfarm::worker::ort;

namespace {

template <typename T>
T parsed(const std::string& text) {
  auto request = parse_request(text);
  REQUIRE_MESSAGE(request.has_value(), (request ? "" : request.error().text()));
  REQUIRE(std::holds_alternative<T>(*request));
  return std::get<T>(*request);
}

std::string refused(const std::string& text) {
  const auto request = parse_request(text);
  REQUIRE(!request);
  CHECK(request.error().code == base::ErrorCode::InvalidInput);
  return request.error().text();
}

}  // namespace

TEST_CASE("a run request is read with all its fields") {
  const auto run = parsed<RunRequest>(
      R"({"op":"run","model":"/m.onnx","optimize":false,"threads":2,"session":{"a":"b"},"no_fallback":false,
      "provider":{"library":"/l.so","name":"N","device":"NPU","options":{"k":"v"}},
      "inputs":[{"file":"/i.bin","dtype":1,"dims":[2,0]}],"output_folder":"/out","output_limit":77,"unknown":[1,{}]})");
  CHECK(run.session.model == "/m.onnx");
  CHECK(!run.session.optimize);
  CHECK(run.session.threads == 2);
  CHECK(run.session.config.at("a") == "b");
  CHECK(!run.session.no_fallback);
  CHECK(run.session.provider.value().library == "/l.so");
  CHECK(run.session.provider.value().name == "N");
  CHECK(run.session.provider.value().device == "NPU");
  CHECK(run.session.provider.value().options.at("k") == "v");
  CHECK(run.inputs.at(0).file == "/i.bin");
  CHECK(run.inputs.at(0).type == domain::TensorType{domain::DType::Float32, {2, 0}});
  CHECK(run.output_folder == "/out");
  CHECK(run.output_limit == 77);
}

TEST_CASE("what is left out has the defaults of the page") {
  const auto run =
      parsed<RunRequest>(R"({"op":"run","model":"/m","output_folder":"/o","provider":null})");
  CHECK(run.session.optimize);
  CHECK(run.session.threads == 0);
  CHECK(run.session.no_fallback);
  CHECK(!run.session.provider);
  CHECK(run.inputs.empty());
  const auto time = parsed<TimeRequest>(R"({"op":"time","model":"/m"})");
  CHECK(time.warm_up == 1);
  CHECK(time.runs == 1);
  CHECK(parsed<CompileRequest>(R"({"op":"compile","model":"/m","output":"/o"})").output == "/o");
  const auto shapes = parsed<ShapesRequest>(
      R"({"op":"shapes","model":"/m","values":["v"],"inputs":[{"name":"i","dtype":7,"dims":[],"lo":0,"hi":3},{"name":"j","dtype":7,"dims":[2],"values":[4,5]}]})");
  CHECK(shapes.values == std::vector<std::string>{"v"});
  CHECK(shapes.inputs.at(0).name == "i");
  CHECK(shapes.inputs.at(0).spec.hi == 3);
  CHECK(shapes.inputs.at(1).spec.values == std::vector<double>{4, 5});
  parsed<DescribeRequest>(R"({"op":"describe"})");
}

TEST_CASE("a request that is wrong says what is wrong with it") {
  CHECK(refused("").find("request: ") == 0);
  CHECK(refused("{").find("parse error") != std::string::npos);
  CHECK(refused("\xff\xfe").find("request: ") == 0);
  CHECK(refused("[]") == "request: it is not an object");
  CHECK(refused("{}") == "request: 'op' is not a text");
  CHECK(refused(R"({"op":"fly"})") == "request: there is no operation 'fly'");
  CHECK(refused(R"({"op":"run"})") == "request: 'model' is not a text");
  CHECK(refused(R"({"op":"run","model":"relative","output_folder":"/o"})") ==
        "request: 'model' is not an absolute path");
  CHECK(refused(R"({"op":"run","model":"/a\u0000b","output_folder":"/o"})") ==
        "request: 'model' holds a NUL");
  CHECK(
      refused(R"({"op":"run","model":"/m","output_folder":"/o","threads":-1})").find("'threads'") !=
      std::string::npos);
  CHECK(refused(R"({"op":"run","model":"/m","output_folder":"/o","threads":1.5})")
            .find("'threads'") != std::string::npos);
  CHECK(refused(R"({"op":"run","model":"/m","output_folder":"/o","optimize":1})")
            .find("'optimize'") != std::string::npos);
  CHECK(
      refused(R"({"op":"run","model":"/m","output_folder":"/o","session":[]})").find("'session'") !=
      std::string::npos);
  CHECK(
      refused(R"({"op":"run","model":"/m","output_folder":"/o","session":{"a":1}})").find("'a'") !=
      std::string::npos);
  CHECK(refused(R"({"op":"run","model":"/m","output_folder":"/o","provider":[]})")
            .find("'provider'") != std::string::npos);
  CHECK(refused(R"({"op":"run","model":"/m","output_folder":"/o","inputs":{}})").find("'inputs'") !=
        std::string::npos);
  CHECK(
      refused(R"({"op":"run","model":"/m","output_folder":"/o","inputs":[1]})").find("'inputs'") !=
      std::string::npos);
  CHECK(
      refused(
          R"({"op":"run","model":"/m","output_folder":"/o","inputs":[{"file":"/f","dtype":1,"dims":[-1]}]})")
          .find("'dims'") != std::string::npos);
  CHECK(
      refused(
          R"({"op":"run","model":"/m","output_folder":"/o","inputs":[{"file":"/f","dtype":1,"dims":[18446744073709551615]}]})")
          .find("'dims'") != std::string::npos);
  CHECK(refused(
            R"({"op":"run","model":"/m","output_folder":"/o","inputs":[{"file":"/f","dtype":1}]})")
            .find("'dims'") != std::string::npos);
  std::string dims = "1";
  for (int i = 0; i < 70; ++i) dims += ",1";
  CHECK(
      refused(
          R"({"op":"run","model":"/m","output_folder":"/o","inputs":[{"file":"/f","dtype":1,"dims":[)" +
          dims + "]}]}")
          .find("64") != std::string::npos);
  CHECK(refused(R"({"op":"time","model":"/m","runs":0})").find("'runs'") != std::string::npos);
  CHECK(refused(R"({"op":"shapes","model":"/m","values":[{}]})").find("'values'") !=
        std::string::npos);
  CHECK(refused(
            R"({"op":"shapes","model":"/m","inputs":[{"name":"n","dtype":1,"dims":[],"lo":"a"}]})")
            .find("'lo'") != std::string::npos);
}
