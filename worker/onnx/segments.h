// A model split by an assignment of executors to operators, for a run of the whole model.
#pragma once

#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"
#include "worker/onnx/fold.h"
#include "worker/onnx/node_group.h"

namespace layerfarm::worker::onnx {

struct SegmentedModel {
  std::vector<domain::Segment> segments;
  /// A group for each segment, then the whole model; with several segments then the whole model
  /// with what leaves them among its results (domain::ModelAnalysis::segments).
  std::vector<NodeGroup> groups;
  std::vector<std::string> ids;    ///< of the groups, for people
  std::vector<std::string> notes;  ///< what could not be as it was assigned
};

/// With `request.quantize` the model is the quantized one, and the assignment is of its operators
/// without QuantizeLinear and DequantizeLinear: these go with their operator (LayerUnit::Qdq), and
/// operators without an executor with their neighbours.
/// A segment is compiled for fixed shapes of what it takes, so a value among `fed` (fed_shapes)
/// never leaves one for another: its maker, its readers and all between them are of one segment, on
/// the executor of the first that makes such a value.
/// Operators whose results are constant, or that nothing of the model's results rests on, are in no
/// segment: nothing has to run them. InvalidInput when the assignment is of another model.
[[nodiscard]] base::Result<SegmentedModel> split_model(const LoadedModel& model,
                                                       const domain::AnalyzeRequest& request,
                                                       const Constants& constants,
                                                       const NameSet& fed);

}  // namespace layerfarm::worker::onnx
