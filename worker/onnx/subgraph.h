// A part of a model as a model of its own (docs/conversions.md). For this folder only.
#pragma once

#include "shared/base/result.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/layer.h"
#include "worker/onnx/fold.h"
#include "worker/onnx/load.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

/// Places of the two named nodes among those that are no Constant; `first` may come after `last`.
/// A name is `<OpType>_<first output>` or that output alone; NotFound with the first names that
/// there are.
[[nodiscard]] base::Result<domain::NodeRange> find_range(const pb::GraphProto& graph,
                                                         const domain::SubgraphRange& asked);

/// The nodes of that range (`first` <= `last`) and all between in graph order, Constant nodes too.
/// What is known of values from outside comes along as initializers, the rest are inputs with the
/// types that they have in the whole model.
[[nodiscard]] LoadedModel take_subgraph(const LoadedModel& model, const domain::NodeRange& range,
                                        const ValueTypes& types, const Constants& constants);

}  // namespace layerfarm::worker::onnx
