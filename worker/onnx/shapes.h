// Types and shapes of every value: ONNX's shape inference first, then what the file declares, then
// what a run of the model showed.
#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shared/base/blob_folder.h"
#include "shared/base/result.h"
#include "shared/domain/tensor.h"
#include "worker/onnx/load.h"
#include "worker/onnx/value_types.h"

namespace layerfarm::worker::onnx {

using Dims = std::vector<std::pair<std::string, std::int64_t>>;

struct Shapes {
  ValueTypes types;
  std::vector<std::string>
      unknown;  ///< values whose type or shape is still open, in order of their nodes
  std::vector<std::string> dim_names;           ///< of the inputs' dims, sorted, each once
  std::unordered_set<std::string> seen_in_run;  ///< values whose shape only a run showed
  /// Values whose shape inference leaves open and that are what the file declares, or follow from
  /// it.
  std::unordered_set<std::string> from_file;
  /// Of those the ones that had other dims in the run: these. The two do not go together in a
  /// layer.
  std::unordered_map<std::string, std::vector<std::int64_t>> other_in_run;
};

/// Gives every dynamic dim of the inputs a number (`--dim`, else 1) and infers the rest.
/// `model.proto` keeps its nodes; its value infos are renewed.
[[nodiscard]] Shapes infer_shapes(LoadedModel& model, const Dims& dims);

/// Takes over what a run of the model showed (the answer of the helper's operation `shapes`, a JSON
/// text). Of values whose type is known only the dims: the run may have been of the model's float
/// form. What a Cast makes has the shape of what it takes.
///
/// Shapes of a layer have one source: where an operator has a value that only the run shows, what
/// the file declares of its other values gives way to what the run showed of them, and so on to the
/// operators that have those. Elsewhere the file's word stays, and it stays where the run showed
/// nothing but an empty tensor: a run with made up inputs may go ways that nobody's inputs go.
void add_seen_shapes(const std::string& answer, const pb::GraphProto& graph, Shapes& shapes,
                     std::vector<std::string>& notes);

/// A request to the helper, with the model that it is about written to `folder`. It asks for what
/// is unknown, and for what is from the file. Large constants are hard-linked from the blobs.
/// Unavailable when the model has an input that cannot be made.
[[nodiscard]] base::Result<std::string> shapes_request(const LoadedModel& model,
                                                       const Shapes& shapes,
                                                       const std::filesystem::path& folder,
                                                       const base::BlobFolder& blobs);

}  // namespace layerfarm::worker::onnx
