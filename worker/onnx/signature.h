// What makes two layers equal work: their form and the values of their constants.
#pragma once

#include <vector>

#include "shared/base/digest.h"
#include "worker/onnx/canonical.h"

namespace layerfarm::worker::onnx {

struct Signatures {
  base::Digest exact;  ///< form and all values
  /// For `--dedup-layers`: without the values of numbers, which are floats, or integers that stand
  /// for floats in a quantized operator (its weights, biases and zero points). Other integers are
  /// axes, shapes, indices: they stay.
  base::Digest loose;
};

/// `contents` holds the digest of each of the layer's constants, in their order.
[[nodiscard]] Signatures sign(const CanonicalLayer& layer,
                              const std::vector<base::Digest>& contents);

}  // namespace layerfarm::worker::onnx
