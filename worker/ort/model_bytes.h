// A serialized ONNX model changed without reading it: messages of protobuf that are written one
// after the other merge.
#pragma once

#include <string>
#include <vector>

#include "shared/base/bytes.h"

namespace layerfarm::worker::ort {

/// Adds graph outputs of the given names and no type (ONNX Runtime finds the types itself).
void add_outputs(base::Bytes& model, const std::vector<std::string>& names);

}  // namespace layerfarm::worker::ort
