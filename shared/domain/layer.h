// Layer: one non-Constant node made into a model of its own, and what reading a model gives (the
// `analyze` job's answer; what it is asked: analyze_request.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/inputs.h"
#include "shared/domain/tensor.h"

namespace layerfarm::domain {

/// A file of bytes that belongs to a module: constants too large to sit inside it.
struct DataFile {
  std::string name;  ///< file name the module refers to
  base::Digest blob;
  std::uint64_t bytes = 0;
  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/// A layer's model as tools get it: canonical names only, so one module serves all layers of one
/// signature.
struct LayerModule {
  std::string format = "onnx";  ///< file name extension of the module
  base::Digest blob;            ///< the module's bytes
  /// Must lie beside the module when it is read. ONNX Runtime takes hard links there; ONNX's own
  /// loader (and so IREE's importer) refuses files that have several, so it needs copies, or the
  /// bytes put into the module in memory.
  std::vector<DataFile> data;
  friend bool operator==(const LayerModule&, const LayerModule&) = default;
};

/// What planning and running need to know of one layer. Names of the model appear only where
/// marked; nothing else depends on them.
struct Layer {
  std::string id;  ///< `<OpType>_<first output>`; unique within the model
  std::string op_type;
  std::string node_name;         ///< as in the model; may be empty
  std::uint32_t orig_index = 0;  ///< place among the model's layers
  /// Place of its operator among the model's non-Constant nodes, which is where the importer's
  /// module has it; none: the module has no operator for it (fused away).
  std::optional<std::uint32_t> node_index;
  base::Digest signature;  ///< canonical form: op types, attributes, types, shapes, constants,
                           ///< opset; names are positions
  /// The same without the values of float constants: what `--dedup-layers` compares.
  base::Digest loose_signature;
  LayerModule module;
  /// Float32 form of the module with each node's output rounded to its type, for reference engines
  /// that lack the type (bf16 ...). Inputs and outputs keep count and shapes but are float32.
  std::optional<LayerModule> wide_module;
  std::vector<InputSpec> inputs;         ///< driven inputs in the module's argument order
  std::vector<std::string> input_names;  ///< names in the model, same order (for --inputs)
  std::vector<std::uint32_t>
      draw_order;  ///< order in which inputs are drawn: by sorted names in the model
  std::vector<TensorType> outputs;        ///< in the module's result order
  std::vector<std::string> output_names;  ///< names in the model, same order
  /// Places in `outputs` of results whose content the model's format leaves open, so that it
  /// decides no verdict; that they come, and in which size, counts. Equal layers have equal ones.
  std::vector<std::uint32_t> open_outputs;
  /// With quantization asked for: whether the module is quantized; false with the reason in
  /// `quantize_note` where the float layer is tested instead.
  std::optional<bool> quantized;
  std::string quantize_note;
  std::int64_t mac_count = 0;
  std::string mac_breakdown = "[]";  ///< JSON array of records (spec section 21)
  /// Not empty: the layer cannot be tested and this says why (for example "the shape of input 'x'
  /// is unknown"); an error case for each executor.
  std::string problem;
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// Place of a top-level operator in the imported module, 1-based.
struct SourceLocation {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string op_type;
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

/// A file that was read, so that a later run can tell whether the model is still the same.
struct ReadFile {
  std::string path;  ///< relative to the model's folder; the model itself first
  base::Digest digest;
  std::uint64_t bytes = 0;
  friend bool operator==(const ReadFile&, const ReadFile&) = default;
};

/// Places of a subgraph's nodes among the whole model's non-Constant nodes, both included.
struct NodeRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  friend bool operator==(const NodeRange&, const NodeRange&) = default;
};

/// A part of a model that runs on one executor (AnalyzeRequest::assignment).
struct Segment {
  std::string executor;
  std::uint32_t operators = 0;  ///< how many of the model's it holds
  /// By the number that its module names a node with (`n0`, `n1` ..): the operator, for people.
  std::vector<std::string> nodes;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Everything that reading a model gives. Of a subgraph, all below is about a module of its own.
struct ModelAnalysis {
  std::string format = "onnx";
  base::Digest model_digest;  ///< content, external data included
  std::vector<ReadFile> files;
  std::vector<Layer> layers;  ///< in graph order
  /// With an assignment asked for: `layers` holds these, in an order in which they can run, then
  /// the whole model; where there are several, then the whole model once more, with all that leaves
  /// a segment among its results.
  std::vector<Segment> segments;
  std::uint32_t operators = 0;         ///< non-Constant nodes: what the importer should see
  std::vector<std::string> dim_names;  ///< of the inputs' dims, sorted: what `--dim` can name
  /// Locations of the importer's top-level operators, constants left out; empty when the import
  /// failed (`location_problem` says why).
  std::vector<SourceLocation> locations;
  std::string location_problem;
  std::optional<NodeRange> subgraph;  ///< where a subgraph was asked for
  /// Not empty: there is no such subgraph, and why; then there are no layers either.
  std::string skipped;
  /// Worth telling the user once ("shapes found by running the model", ...). Those that begin with
  /// a prefix in brackets are part of every run's log, the others are for `--verbose`.
  std::vector<std::string> notes;
  std::string importer_version;
  friend bool operator==(const ModelAnalysis&, const ModelAnalysis&) = default;
};

}  // namespace layerfarm::domain
