// What layerfarm-ort does for each request (docs/helpers.md). One thread; every failure of ONNX
// Runtime or of a provider is an error answer with its own words. Crashes of a provider end the
// process: the worker sees to that.
#pragma once

#include <string>

#include "worker/ort/runtime.h"

namespace layerfarm::worker::ort {

class Operations {
 public:
  explicit Operations(Runtime& runtime) : runtime_(runtime) {}
  /// One request's JSON text in, one answer's JSON text out.
  [[nodiscard]] std::string answer(const std::string& request);

 private:
  Runtime& runtime_;
};

}  // namespace layerfarm::worker::ort
