// What the command line asks of quantization (spec sections 10 and 18), and what it comes to.
#pragma once

#include <optional>
#include <string>

#include "coordinator/report/json.h"
#include "shared/base/digest.h"
#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"

namespace CLI {
class App;
}

namespace layerfarm::coordinator::app {

struct QuantizeOptions {
  bool enabled = false;  ///< the command `quantize` quantizes without the flag
  bool per_channel = false;
  bool full_integer = false;
  std::string format = "qdq";
  std::string dtype = "A8W8";  ///< the only one there is
  int samples = 20;
  std::string calibration;          ///< folder of the user's samples; empty = random ones
  base::Digest calibration_digest;  ///< of what is in it; see find_calibration
};

/// `--quantize` and the flags that say how; without `with_switch` (the command `quantize`) only the
/// latter.
void add_quantize_flags(CLI::App& app, QuantizeOptions& options, bool with_switch);

/// Makes the folder absolute and takes the digest of what is in it. NotFound when there is nothing.
[[nodiscard]] base::Result<void> find_calibration(QuantizeOptions& options);

/// None where nothing is to be quantized.
[[nodiscard]] std::optional<domain::Quantization> quantization_of(const QuantizeOptions& options);

/// A flag that says how to quantize while nothing is quantized; empty when all is well.
[[nodiscard]] std::string idle_quantize_flags(const QuantizeOptions& options);

/// `quantize` in `_settings`, only where it is asked for.
void add_quantize_settings(const QuantizeOptions& options, report::json::Object& settings);

/// How many layers are quantized, are tested in float, and are fused away in the whole model. Null
/// where nothing was quantized.
[[nodiscard]] report::json::Value quantization_counts(const domain::ModelAnalysis& model);

/// What the counts say, with the layers that stayed in float by reason. Empty where nothing was
/// quantized.
[[nodiscard]] std::string quantization_line(const domain::ModelAnalysis& model);

}  // namespace layerfarm::coordinator::app
