#include "worker/ort/model_bytes.h"

#include <doctest/doctest.h>

#include <string>

using layerfarm::worker::ort::add_outputs;

TEST_CASE("outputs are added as one more graph message that merges with the model's own") {
  std::string model = "m";
  add_outputs(model, {"ab"});
  // field 7, 6 bytes: field 12, 4 bytes: field 1, 2 bytes
  CHECK(model == std::string("m\x3a\x06\x62\x04\x0a\x02") + "ab");
}

TEST_CASE("long names are written with a length of several bytes") {
  std::string model;
  add_outputs(model, {std::string(300, 'n')});
  CHECK(model.size() == 300 + 9);
  CHECK(model.substr(0, 3) == "\x3a\xb2\x02");
}
