#include "coordinator/app/asked_names.h"

#include <doctest/doctest.h>

using namespace layerfarm;
using namespace layerfarm::coordinator::app;

namespace {

domain::ModelAnalysis model_with_dims(const std::vector<std::string>& dims) {
  domain::ModelAnalysis out;
  out.dim_names = dims;
  out.layers.resize(1);
  out.layers[0].input_names = {"image"};
  out.layers[0].output_names = {"y"};
  return out;
}

InputFiles arrays(std::vector<std::string> names) {
  InputFiles out;
  out.names = std::move(names);
  out.set.folder = base::digest_of("arrays");
  out.set.path = "/arrays";
  return out;
}

}  // namespace

TEST_CASE("a dim that no model has is an error with the names there are; one has it: all is well") {
  const domain::ModelAnalysis lacks = model_with_dims({"batch"});
  const domain::ModelAnalysis has = model_with_dims({"batc", "batch"});
  DiscoverOptions options;
  options.dims = {{"batc", 2}, {"batch", 2}};
  const ReadModel both[2] = {{"a", &lacks}, {"b", &has}};
  CHECK(check_asked_names(options, {}, both).errors.empty());
  const AskedNames one = check_asked_names(options, {}, {both, 1});
  REQUIRE(one.errors.size() == 1);
  CHECK(one.errors[0] ==
        "--dim batc would change nothing; a: no input has a dim named 'batc' (its dims with names: "
        "batch)");
  // A model that could not be read has no say.
  CHECK(check_asked_names(options, {}, {}).errors.empty());
}

TEST_CASE("arrays of which none fits are an error, some that do not fit a line") {
  const domain::ModelAnalysis model = model_with_dims({});
  const ReadModel read[1] = {{"net", &model}};
  const AskedNames none = check_asked_names({}, arrays({"imgae"}), read);
  REQUIRE(none.errors.size() == 1);
  CHECK(none.errors[0] ==
        "--inputs: no layer has an input of a name that /arrays holds (imgae); net has the inputs "
        "image");
  const AskedNames some = check_asked_names({}, arrays({"image", "mask"}), read);
  CHECK(some.errors.empty());
  CHECK(some.lines == std::vector<std::string>{
                          "[Inputs] net: 1 of 1 layer inputs come from 1 array(s) of --inputs",
                          "[Inputs] no layer has an input of the name mask; nothing is taken from "
                          "there"});
  InputFiles damaged = arrays({});
  damaged.all_known = false;
  CHECK(check_asked_names({}, damaged, read).errors.empty());
}

namespace {

domain::ModelAnalysis model_with_layers(const std::vector<std::string>& ids) {
  domain::ModelAnalysis out;
  for (const std::string& id : ids) {
    domain::Layer layer;
    layer.id = id;
    layer.op_type = id.substr(0, id.find('_'));
    out.layers.push_back(std::move(layer));
  }
  return out;
}

}  // namespace

TEST_CASE("a pattern that matches no layer of any model is an error with the nearest ids") {
  const domain::ModelAnalysis first = model_with_layers({"Conv_a", "Relu_b"});
  const domain::ModelAnalysis second = model_with_layers({"Add_c", "Relu_b"});
  const ReadModel both[2] = {{"one", &first}, {"two", &second}};
  DiscoverOptions options;
  options.layers = {"add_*", "relu"};
  CHECK(check_asked_names(options, {}, both).errors.empty());
  CHECK(
      check_asked_names(options, {}, {both, 1}).errors ==
      std::vector<std::string>{"--layers add_* matches no layer of one; nearest: Conv_a, Relu_b"});
  options.layers = {"Cnv_a"};
  CHECK(check_asked_names(options, {}, both).errors ==
        std::vector<std::string>{"--layers Cnv_a matches no layer of any of the models; nearest: "
                                 "Conv_a, Add_c, Relu_b"});
  // A model without layers says itself why it has none.
  const domain::ModelAnalysis empty;
  const ReadModel none[1] = {{"empty", &empty}};
  CHECK(check_asked_names(options, {}, none).errors.empty());
}

TEST_CASE("commas part the patterns of layers, unless an id has the whole text") {
  const domain::ModelAnalysis plain = model_with_layers({"Conv_a", "Relu_b"});
  const domain::ModelAnalysis comma = model_with_layers({"Conv_a", "Relu_b", "Conv_a,Relu_b"});
  const ReadModel models[2] = {{"plain", &plain}, {"comma", &comma}};
  DiscoverOptions options;
  options.layers = {"Conv_a,Relu_b"};
  CHECK(check_asked_names(options, {}, {models, 1}).layers ==
        std::vector<std::string>{"Conv_a", "Relu_b"});
  CHECK(check_asked_names(options, {}, models).layers == options.layers);
  options.layers = {"Conv_a, Rel_b"};
  CHECK(check_asked_names(options, {}, models).errors.size() == 1);
}

TEST_CASE("an op type that no model has is a line, whatever else is left out") {
  const domain::ModelAnalysis model = model_with_layers({"Conv_a", "Relu_b"});
  const ReadModel read[1] = {{"net", &model}};
  DiscoverOptions options;
  options.skip_ops = {"conv", "Conf"};
  const AskedNames names = check_asked_names(options, {}, read);
  CHECK(names.errors.empty());
  CHECK(names.lines == std::vector<std::string>{
                           "[SkipOps] Warning: no layer is of type 'Conf'; nearest: Conv, Relu"});
}
