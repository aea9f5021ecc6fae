#include "worker/ort/log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace layerfarm::worker::ort;

namespace {
void log(OrtLoggingLevel level, const std::string& message) {
  log_line(nullptr, level, "", "", "here.cc:1 f", message.c_str());
}
}  // namespace

TEST_CASE("only lines that give a reason are taken from a message") {
  CHECK(reasons_in("Validation FAILED for 1 nodes in (Erf) :\n\tOperator type: Erf Node index: "
                   "0\n\tREASON : Operators of type `Erf` are not supported. ") ==
        std::vector<std::string>{"Operators of type `Erf` are not supported."});
  CHECK(reasons_in("graph finalize failed: MEM_ALLOC, Code: 1002") ==
        std::vector<std::string>{"graph finalize failed: MEM_ALLOC, Code: 1002"});
  CHECK(reasons_in("Unsupported data type\nall is well\nthe backend does not support it") ==
        std::vector<std::string>{"Unsupported data type", "the backend does not support it"});
  CHECK(reasons_in("QNN.backendValidateOpConfig() failed for node `n0` of type `Transpose` with "
                   "error code 3110")
            .size() == 1);
  // The provider counts the nodes of its process; a layer's text must not tell what ran before it.
  CHECK(reasons_in("validation failed for node `n0_12` of type `Dequantize`") ==
        std::vector<std::string>{"validation failed for node `n0` of type `Dequantize`"});
  CHECK(reasons_in("profiling off").empty());
  CHECK(reasons_in("").empty());
  CHECK(reasons_in("REASON :").empty());
  CHECK(reasons_in("Unsupported nodes:").empty());
}

TEST_CASE("reasons are caught only while somebody listens, each once, and not without end") {
  log(ORT_LOGGING_LEVEL_VERBOSE, "reason: before");
  const Listener listener;
  CHECK(listener.reasons().empty());
  log(ORT_LOGGING_LEVEL_VERBOSE, "reason: one");
  log(ORT_LOGGING_LEVEL_ERROR, "reason: two");
  log(ORT_LOGGING_LEVEL_INFO, "reason: one");
  CHECK(listener.reasons() == std::vector<std::string>{"reason: one", "reason: two"});
  for (int i = 0; i < 100; ++i) log(ORT_LOGGING_LEVEL_INFO, "reason: " + std::to_string(i));
  CHECK(listener.reasons().size() == 20);
}
