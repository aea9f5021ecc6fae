// With ONNX Runtime's own library and CPU provider, which every checkout has.
#include "worker/ort/operations.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shared/base/files.h"
#include "shared/base/onnxruntime_library.h"
#include "tests/support/paths.h"

using namespace layerfarm;
using namespace layerfarm::worker::ort;
using nlohmann::json;

namespace {

struct Fixture {
  base::ScratchFolder folder = std::move(
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-ort-test"));
  std::string path = folder.path().string();

  static Runtime& runtime() {
    // One environment per process, as in the helper.
    static Runtime opened = [] {
      auto result = Runtime::open();
      REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
      return std::move(*result);
    }();
    return opened;
  }
  static json ask(const json& request) {
    return json::parse(Operations(runtime()).answer(request.dump()));
  }
  static std::string model(const std::string& name) {
    return std::string(test::kTestsFolder) + "/data/ort/" + name + ".onnx";
  }

  template <typename T>
  json input(const std::string& name, int dtype, const std::vector<std::int64_t>& dims,
             const std::vector<T>& values) const {
    const std::string file = path + "/" + name;
    REQUIRE(base::write_file_atomically(
        file, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)},
        base::Sync::No));
    return {{"file", file}, {"dtype", dtype}, {"dims", dims}};
  }
  json add_relu_inputs() const {
    return json::array({input<float>("a", 1, {2, 3}, {1, 2, 3, 4, 5, 6}),
                        input<float>("b", 1, {2, 3}, {1, -9, 1, 1, 1, 0.5F})});
  }
};

std::string text_of(const json& answer, const std::string& where) {
  CHECK(answer.at("ok") == false);
  CHECK(answer.at("where") == where);
  return answer.at("text");
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the helper says which runtime it has") {
  const json answer = ask({{"op", "describe"}});
  CHECK(answer.at("ok") == true);
  CHECK(answer.at("version") == runtime().version());
  CHECK(answer.at("api") == 22);
  CHECK(std::filesystem::exists(base::onnxruntime_library()));
}

TEST_CASE_FIXTURE(Fixture, "a run writes each output as a raw file with its type") {
  for (const bool optimize : {true, false}) {
    const json answer = ask({{"op", "run"},
                             {"model", model("add_relu")},
                             {"optimize", optimize},
                             {"threads", 1},
                             {"inputs", add_relu_inputs()},
                             {"output_folder", path}});
    REQUIRE_MESSAGE(answer.at("ok") == true, answer.dump());
    REQUIRE(answer.at("outputs").size() == 1);
    CHECK(answer.at("outputs")[0].at("dtype") == 1);
    CHECK(answer.at("outputs")[0].at("dims") == json::array({2, 3}));
    CHECK(answer.at("run_us").get<std::int64_t>() >= 0);
    const std::string raw =
        base::read_file(answer.at("outputs")[0].at("file").get<std::string>()).value();
    const std::vector<float> expected = {2, 0, 4, 5, 6, 6.5};
    REQUIRE(raw.size() == expected.size() * sizeof(float));
    CHECK(std::memcmp(raw.data(), expected.data(), raw.size()) == 0);
  }
}

TEST_CASE_FIXTURE(Fixture, "timing gives one number per run") {
  const json answer = ask(
      {{"op", "time"}, {"model", model("add_relu")}, {"inputs", add_relu_inputs()}, {"runs", 5}});
  REQUIRE_MESSAGE(answer.at("ok") == true, answer.dump());
  CHECK(answer.at("runs_us").size() == 5);
}

TEST_CASE_FIXTURE(Fixture, "inputs that do not fit the model are named") {
  const auto run = [&](const json& inputs) {
    return ask(
        {{"op", "run"}, {"model", model("add_relu")}, {"inputs", inputs}, {"output_folder", path}});
  };
  CHECK(text_of(run(json::array()), "run") == "the model takes 2 inputs, 0 are given");
  const json good = input<float>("g", 1, {2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(text_of(run({good, input<float>("w", 1, {3, 2}, {1, 2, 3, 4, 5, 6})}), "run")
            .find("input 1 is given as float32[3,2], the model wants float32[2,3]") == 0);
  CHECK(text_of(run({good, input<double>("d", 11, {2, 3}, {1, 2, 3, 4, 5, 6})}), "run")
            .find("float64") != std::string::npos);
  CHECK(text_of(run({good, input<float>("s", 1, {2, 3}, {1, 2})}), "run")
            .find("takes 24 bytes, not 8") != std::string::npos);
  CHECK(text_of(run({good, {{"file", path + "/none"}, {"dtype", 1}, {"dims", {2, 3}}}}), "run")
            .find("input 1") == 0);
}

TEST_CASE_FIXTURE(Fixture, "what the library refuses comes back in its own words") {
  CHECK(!text_of(ask({{"op", "run"}, {"model", path + "/none.onnx"}, {"output_folder", path}}),
                 "import")
             .empty());
  REQUIRE(base::write_file_atomically(path + "/bad.onnx", "not a model", base::Sync::No));
  CHECK(!text_of(ask({{"op", "run"}, {"model", path + "/bad.onnx"}, {"output_folder", path}}),
                 "import")
             .empty());
  const json inputs = json::array(
      {input<float>("a", 1, {2, 3}, {1, 2, 3, 4, 5, 6}), input<std::int64_t>("s", 7, {2}, {4, 4})});
  CHECK(text_of(ask({{"op", "run"},
                     {"model", model("reshape_fails")},
                     {"inputs", inputs},
                     {"output_folder", path}}),
                "run")
            .find("Reshape") != std::string::npos);
  CHECK(
      text_of(json::parse(Operations(runtime()).answer("nonsense")), "request").find("request: ") ==
      0);
}

TEST_CASE_FIXTURE(Fixture, "outputs that cannot be compared or are too large are refused") {
  const json one = json::array({input<float>("a", 1, {2}, {1, 2})});
  CHECK(text_of(ask({{"op", "run"},
                     {"model", model("sequence")},
                     {"inputs", one},
                     {"output_folder", path}}),
                "run")
            .find("output 0 is no tensor") == 0);
  CHECK(text_of(ask({{"op", "run"},
                     {"model", model("add_relu")},
                     {"inputs", add_relu_inputs()},
                     {"output_folder", path},
                     {"output_limit", 23}}),
                "run") == "the outputs take more than 23 bytes");
  CHECK(!text_of(ask({{"op", "run"},
                      {"model", model("add_relu")},
                      {"inputs", add_relu_inputs()},
                      {"output_folder", path + "/none"}}),
                 "store")
             .empty());
}

TEST_CASE_FIXTURE(Fixture, "a provider that is not there is an answer") {
  const json provider = {{"library", path + "/none.so"}, {"name", "NoneExecutionProvider"}};
  CHECK(!text_of(ask({{"op", "run"},
                      {"model", model("add_relu")},
                      {"provider", provider},
                      {"inputs", add_relu_inputs()},
                      {"output_folder", path}}),
                 "compile")
             .empty());
  CHECK(
      text_of(ask({{"op", "compile"}, {"model", model("add_relu")}, {"output", path + "/c.onnx"}}),
              "request")
          .find("needs a provider") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "shapes of intermediates come from a run of the whole model") {
  const json answer = ask({{"op", "shapes"}, {"model", model("add_relu")}, {"values", {"y"}}});
  REQUIRE_MESSAGE(answer.at("ok") == true, answer.dump());
  CHECK(answer.at("filled_with") == "zeros");
  CHECK(answer.at("values") == json::array({{{"name", "z"}, {"dtype", 1}, {"dims", {2, 3}}},
                                            {{"name", "y"}, {"dtype", 1}, {"dims", {2, 3}}}}));
}

TEST_CASE_FIXTURE(Fixture, "a dynamic dim is as asked for, else 1") {
  const json one = ask({{"op", "shapes"}, {"model", model("dynamic")}, {"values", {"n"}}});
  REQUIRE_MESSAGE(one.at("ok") == true, one.dump());
  CHECK(one.at("values")[1] == json{{"name", "n"}, {"dtype", 7}, {"dims", {2, 4}}});
  const json inputs = json::array({{{"name", "a"}, {"dtype", 1}, {"dims", {5, 4}}}});
  CHECK(ask({{"op", "shapes"}, {"model", model("dynamic")}, {"inputs", inputs}}).at("ok") == true);
}

TEST_CASE_FIXTURE(
    Fixture, "a shape that zeros leave empty is taken from a fill that does not, if one does") {
  const json ones = ask({{"op", "shapes"}, {"model", model("dynamic")}, {"values", {"n"}}});
  REQUIRE_MESSAGE(ones.at("ok") == true, ones.dump());
  CHECK(ones.at("filled_with") == "ones");
  CHECK(ones.at("values")[1].at("dims") == json{2, 4});
}

TEST_CASE_FIXTURE(Fixture, "inputs that zeros do not suit are tried with ones, then in range") {
  const json ones = ask({{"op", "shapes"}, {"model", model("ones_only")}});
  REQUIRE_MESSAGE(ones.at("ok") == true, ones.dump());
  CHECK(ones.at("filled_with") == "ones");
  const json inputs =
      json::array({{{"name", "s"}, {"dtype", 7}, {"dims", {2}}, {"lo", 0}, {"hi", 2}}});
  CHECK(!text_of(ask({{"op", "shapes"}, {"model", model("reshape_fails")}, {"inputs", inputs}}),
                 "run")
             .empty());
}

TEST_CASE_FIXTURE(Fixture, "an input with given values has them from the first attempt on") {
  const json inputs =
      json::array({{{"name", "s"}, {"dtype", 7}, {"dims", {2}}, {"values", {3, 2}}}});
  const json answer =
      ask({{"op", "shapes"}, {"model", model("reshape_fails")}, {"inputs", inputs}});
  REQUIRE_MESSAGE(answer.at("ok") == true, answer.dump());
  CHECK(answer.at("filled_with") == "zeros");
  CHECK(answer.at("values")[0].at("dims") == json{3, 2});
}

TEST_CASE_FIXTURE(Fixture, "a value that does not exist is an error answer") {
  CHECK(!text_of(ask({{"op", "shapes"}, {"model", model("add_relu")}, {"values", {"nowhere"}}}),
                 "import")
             .empty());
}
