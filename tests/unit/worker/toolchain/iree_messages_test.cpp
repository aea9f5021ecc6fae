#include "worker/toolchain/iree_messages.h"

#include <doctest/doctest.h>

using namespace layerfarm::worker::toolchain;

namespace {

const char* const kTwoCulprits =
    "module.mlir:4:10: error: failed to legalize operation 'torch.operator': %1 = "
    "\"torch.operator\"\n"
    "    %0 = torch.operator \"onnx.Cast\"(%arg0)\n"
    "         ^\n"
    "module.mlir:4:10: note: see current operation: %1\n"
    "module.mlir:100:10: error: no such thing in layer_12\n";

const std::vector<BatchLayer> kLayers = {
    {"layer_1", {{2, 6}}}, {"layer_12", {{98, 102}, {110, 120}}}, {"layer_3", {{50, 60}}}};

}  // namespace

TEST_CASE("the compiler's output is split into messages with their line, kind and what follows") {
  const auto messages = split_messages(kTwoCulprits);
  REQUIRE(messages.size() == 3);
  CHECK(messages[0].line == 4);
  CHECK(messages[0].error);
  CHECK(messages[0].text ==
        "failed to legalize operation 'torch.operator': %1 = \"torch.operator\"");
  CHECK(messages[0].whole.find("onnx.Cast") != std::string::npos);
  CHECK_FALSE(messages[1].error);
  CHECK(messages[2].line == 100);
}

TEST_CASE("a message without a place has line 0, and lines that only look like one are none") {
  const auto messages =
      split_messages("noise\n<unknown>:0: error: what\nsee a b: error: c\n  tail\n");
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].line == 0);
  CHECK(messages[0].text == "what");
  CHECK(messages[0].whole == "<unknown>:0: error: what\nsee a b: error: c\n  tail");
  CHECK(split_messages("").empty());
  CHECK(split_messages("f:99999999999999:1: error: x")[0].line == 0);
}

TEST_CASE("several culprits of one batch are found at once by place, each with its own text") {
  const Blame found = blame(split_messages(kTwoCulprits), kLayers);
  CHECK(found.complete);
  CHECK(found.any());
  REQUIRE(found.text.size() == 3);
  CHECK(found.text[0] == "failed to legalize operation 'torch.operator': %1 = \"torch.operator\"");
  CHECK(found.text[1] == "no such thing in layer");
  CHECK_FALSE(found.text[2].has_value());
}

TEST_CASE("a place in a function that the importer made for a layer blames that layer") {
  const Blame found = blame(split_messages("m:115:1: error: inside"), kLayers);
  CHECK(found.complete);
  CHECK(found.text[1] == "inside");
}

TEST_CASE(
    "where the place does not tell, a name in the message or its notes does, and the texts count "
    "as incomplete") {
  const Blame found =
      blame(split_messages(
                "m:1:1: error: translation failed\nm:1:1: note: see \"layer_12_dispatch_0\"\n"),
            kLayers);
  CHECK_FALSE(found.complete);
  CHECK_FALSE(found.text[0].has_value());  // layer_1 is only the beginning of that name
  CHECK(found.text[1] == "translation failed");
}

TEST_CASE("an error that names nobody, or several, blames nobody") {
  CHECK_FALSE(blame(split_messages("<unknown>:0: error: x\n"), kLayers).any());
  CHECK_FALSE(blame(split_messages("m:1:1: error: layer_1 and layer_3\n"), kLayers).any());
  CHECK_FALSE(blame(split_messages("m:4:1: warning: x\n"), kLayers).any());
}

TEST_CASE(
    "a refusal's text is all errors, each once, without the name in the batch: the same alone and "
    "in a batch") {
  const std::string printed =
      "m:4:1: error: in layer_1: bad\nm:4:1: error: in layer_1: bad\nm:5:1: error: "
      "layer_1_dispatch_0 too\nm:5:1: note: n\n";
  const std::string alone = refusal_text(split_messages(printed), "layer_1");
  CHECK(alone == "in layer: bad\nlayer_dispatch_0 too");
  CHECK(blame(split_messages(printed), kLayers).text[0] == alone);
}

TEST_CASE("a crash is told by what was said before the stack trace") {
  CHECK(crash_text("LLVM ERROR: bad type\nmore\nPlease report issues to x\n #0 0x123\n") ==
        "LLVM ERROR: bad type\nmore");
  CHECK(crash_text(" #0 0x123\n").empty());
}
