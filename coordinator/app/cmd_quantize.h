// `layerfarm quantize`: a model quantized to int8, as discover quantizes it (spec section 10).
#pragma once

#include <string>

#include "coordinator/app/quantize_options.h"

namespace layerfarm::coordinator::app {

struct QuantizeCommandOptions {
  std::string model;
  std::string output;  ///< empty: the model's path with the extension `.int8.onnx`
  std::string dataset;
  QuantizeOptions how;
};

/// Where the quantized model goes when nothing else is said.
[[nodiscard]] std::string default_quantized_path(const std::string& model);

/// Prints to standard output and error; returns the exit code.
int cmd_quantize(QuantizeCommandOptions options);

}  // namespace layerfarm::coordinator::app
