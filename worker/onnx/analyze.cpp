#include "worker/onnx/analyze.h"

#include <onnx/common/version.h>
#include <tbb/concurrent_hash_map.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "worker/onnx/canonical.h"
#include "worker/onnx/convert.h"
#include "worker/onnx/data_files.h"
#include "worker/onnx/fed_shapes.h"
#include "worker/onnx/fold.h"
#include "worker/onnx/layer_units.h"
#include "worker/onnx/load.h"
#include "worker/onnx/macs.h"
#include "worker/onnx/node_group.h"
#include "worker/onnx/open_outputs.h"
#include "worker/onnx/ranges.h"
#include "worker/onnx/segments.h"
#include "worker/onnx/shapes.h"
#include "worker/onnx/signature.h"
#include "worker/onnx/subgraph.h"
#include "worker/onnx/wide.h"
#include "worker/onnx/write_model.h"

namespace layerfarm::worker::onnx {
namespace {

using base::fail;
using base::Result;
using domain::DType;
using domain::Layer;

/// Stores each constant once, however many layers and threads ask for it.
class DataStore {
 public:
  explicit DataStore(const base::BlobFolder& blobs) : blobs_(blobs) {}

  Result<domain::DataFile> file_of(const Constant& value) {
    Files::accessor entry;
    // Constants of one model stay where they are in memory, so the place of the bytes names them.
    if (files_.insert(entry, {value.bytes.data(), value.size()}))
      entry->second = store_data(value, blobs_);
    return entry->second;
  }

 private:
  using Key = std::pair<const char*, std::uint64_t>;
  struct Compare {
    [[nodiscard]] std::size_t hash(const Key& key) const {
      return std::hash<const char*>{}(key.first) ^ key.second;
    }
    [[nodiscard]] bool equal(const Key& a, const Key& b) const { return a == b; }
  };
  using Files = tbb::concurrent_hash_map<Key, Result<domain::DataFile>, Compare>;
  const base::BlobFolder& blobs_;
  Files files_;
};

/// Whether a result's shape depends on the values that are fed: then neither the file nor a run of
/// the model can say it for the layer.
bool shape_depends_on_values(const pb::NodeProto& node, const std::string& output,
                             const Shapes& shapes) {
  static const std::set<std::string> perhaps = {"If", "Loop", "Scan"};
  if (counts_values(node)) return true;
  return (!in_default_domain(node) || perhaps.contains(node.op_type())) &&
         shapes.seen_in_run.contains(output);
}

/// Why a value cannot be fed or compared; empty when it can.
std::string value_problem(const std::string& what, const std::string& name,
                          const ValueTypes& types) {
  const auto found = types.find(name);
  const std::string value = what + " '" + name + "'";
  if (found == types.end() ||
      (found->second.other.empty() && found->second.dtype == DType::Undefined))
    return "the type of " + value + " is unknown";
  const ValueType& type = found->second;
  if (!type.other.empty())
    return value + " is " + (type.other.starts_with("o") ? "an " : "a ") + type.other +
           "; only tensors can be fed and compared";
  if (!domain::is_floating(type.dtype) && !domain::is_integer(type.dtype) &&
      type.dtype != DType::Bool) {
    return value + " has the element type " + type_text(type.dtype) +
           ", which cannot be fed and compared";
  }
  if (!type.fixed()) return "the shape of " + value + " is unknown";
  if (const auto bytes = raw_bytes(type.dtype, *type.dims); !bytes || *bytes > kMaxTensorBytes)
    return value + " has a shape of more than 2 GiB";
  return {};
}

std::string layer_problem(const CanonicalLayer& canonical, const ValueTypes& types) {
  if (canonical.outputs.empty()) return "it has no output";
  for (const std::string& name : canonical.inputs) {
    if (std::string problem = value_problem("input", name, types); !problem.empty()) return problem;
  }
  for (const std::string& name : canonical.outputs) {
    if (std::string problem = value_problem("output", name, types); !problem.empty())
      return problem;
  }
  return {};
}

/// Shapes of a layer have one source. Where the file declares one, and the run that had to be made
/// for another showed an empty one, nothing says what the layer is.
std::string source_problem(const NodeGroup& group, const CanonicalLayer& canonical,
                           const Shapes& shapes) {
  const auto depends = [&](const std::string& name) {
    return std::any_of(group.nodes.begin(), group.nodes.end(), [&](const pb::NodeProto* node) {
      return std::find(node->output().begin(), node->output().end(), name) !=
                 node->output().end() &&
             shape_depends_on_values(*node, name, shapes);
    });
  };
  std::string seen;
  std::string other;
  const auto look = [&](const std::string& what, const std::string& name) {
    if (seen.empty() && shapes.seen_in_run.contains(name)) seen = what + " '" + name + "'";
    const auto found = shapes.other_in_run.find(name);
    if (!other.empty() || found == shapes.other_in_run.end()) return;
    other = "the shape of " + what + " '" + name + "' is " +
            dims_text(*shapes.types.at(name).dims) + " by the model file, but " +
            dims_text(found->second) + " in the run that shows the shape of ";
  };
  for (const std::string& name : canonical.inputs) look("input", name);
  for (const std::string& name : canonical.outputs) {
    if (!depends(name)) look("output", name);
  }
  return seen.empty() || other.empty() ? std::string() : other + seen;
}

/// Ids as the spec has them; where two would be equal, the later one gets a number that makes it
/// unlike all others.
std::vector<std::string> layer_ids(const std::vector<NodeGroup>& groups) {
  std::vector<std::string> ids;
  std::set<std::string> taken;
  for (const NodeGroup& group : groups) {
    const pb::NodeProto* const node = &group.main();
    const auto output = std::find_if(node->output().begin(), node->output().end(),
                                     [](const std::string& name) { return !name.empty(); });
    ids.push_back(node->op_type() + "_" +
                  (output == node->output().end() ? node->name() : *output));
    taken.insert(ids.back());
  }
  std::set<std::string> seen;
  for (std::string& id : ids) {
    if (seen.insert(id).second) continue;
    std::string other;
    int n = 2;
    do {
      other = id + "_" + std::to_string(n++);
    } while (!taken.insert(other).second);
    id = other;
  }
  return ids;
}

using Places = std::unordered_map<const pb::NodeProto*, std::uint32_t>;

/// Of each non-Constant node among them.
Places operator_places(const LoadedModel& model) {
  Places out;
  for (const pb::NodeProto& node : model.proto.graph().node()) {
    if (!is_constant_node(node)) out.emplace(&node, static_cast<std::uint32_t>(out.size()));
  }
  return out;
}

/// All that the layers of one model share.
struct Model {
  const LoadedModel& loaded;
  const Shapes& shapes;
  /// For what runs as a part of the model, empty for layers by themselves: values whose shape is
  /// the one that comes, not that of the run of the reader; and those whose content is open as the
  /// model has them, though a part is fed them.
  const NameSet& open_shapes;
  const NameSet& open_contents;
  const Constants& constants;
  const Ranges& ranges;
  const base::BlobFolder& blobs;
  DataStore& data;
  Places places;
};

const Constant& constant_in(const Constant* value) { return *value; }
const Constant& constant_in(const Constant& value) { return value; }

/// A module with its constants in place, stored; and the digest of each constant.
struct Stored {
  domain::LayerModule module;
  std::vector<base::Digest> contents;
};

template <typename Value>
Result<Stored> store_module(pb::ModelProto module,
                            const std::vector<std::pair<std::string, Value>>& constants,
                            const base::BlobFolder& blobs, DataStore* data) {
  Stored out;
  for (const auto& [name, item] : constants) {
    const Constant& value = constant_in(item);
    pb::TensorProto& tensor = *module.mutable_graph()->add_initializer();
    tensor.set_name(name);
    if (!goes_to_file(value)) {
      write_constant(value, tensor);
      out.contents.push_back(content_digest(value));
      continue;
    }
    auto file = data != nullptr ? data->file_of(value) : store_data(value, blobs);
    if (!file) return fail(file.error());
    refer_to_data(value, *file, tensor);
    out.contents.push_back(file->blob);
    const auto same = [&](const domain::DataFile& other) { return other.name == file->name; };
    if (std::none_of(out.module.data.begin(), out.module.data.end(), same))
      out.module.data.push_back(*file);
  }
  auto blob = blobs.put(serialize(module));
  if (!blob) return fail(std::move(blob.error()));
  out.module.blob = *blob;
  return out;
}

/// Types of all that the group touches, as far as they are known.
ValueTypes types_of(const NodeGroup& group, const ValueTypes& all) {
  ValueTypes out;
  const auto take = [&](const std::string& name) {
    if (const auto found = all.find(name); found != all.end()) out.insert(*found);
  };
  for (const pb::NodeProto* node : group.nodes) {
    for (const std::string& name : used_names(*node)) take(name);
    for (const std::string& name : node->output()) take(name);
  }
  for (const std::string& name : group.also_given) take(name);
  return out;
}

/// The counts of its nodes together.
Macs count_macs(const NodeGroup& group, const ValueTypes& types) {
  if (group.nodes.size() == 1) return count_macs(*group.nodes.front(), types);
  Macs out;
  std::string records;
  for (const pb::NodeProto* node : group.nodes) {
    const Macs macs = count_macs(*node, types);
    out.count += macs.count;
    const std::string inside = macs.breakdown.substr(1, macs.breakdown.size() - 2);
    if (!inside.empty()) records += (records.empty() ? "" : ",") + inside;
  }
  out.breakdown = "[" + records + "]";
  return out;
}

Result<Layer> make_layer(const NodeGroup& group, std::string id, std::size_t index,
                         const Model& model) {
  Layer layer;
  layer.node_index = model.places.at(&group.main());
  layer.id = std::move(id);
  layer.op_type = group.main().op_type();
  layer.node_name = group.main().name();
  layer.orig_index = static_cast<std::uint32_t>(index);

  const ValueTypes types = types_of(group, model.shapes.types);
  ValueTypes written = types;
  for (const pb::NodeProto* node : group.nodes) {
    for (const std::string& name : node->output()) {
      const auto found = written.find(name);
      if (found == written.end() || !found->second.dims ||
          !(model.open_shapes.contains(name) || shape_depends_on_values(*node, name, model.shapes)))
        continue;
      std::fill(found->second.dims->begin(), found->second.dims->end(), -1);
    }
  }
  const CanonicalLayer canonical =
      canonical_layer(group, model.loaded.proto, written, model.constants);
  auto stored = store_module(canonical.module, canonical.constants, model.blobs, &model.data);
  if (!stored) return fail(std::move(stored.error()));
  layer.module = std::move(stored->module);
  const Signatures signatures = sign(canonical, stored->contents);
  layer.signature = signatures.exact;
  layer.loose_signature = signatures.loose;
  if (const auto wide = wide_layer(canonical)) {
    auto wide_stored = store_module(wide->module, wide->constants, model.blobs, nullptr);
    if (!wide_stored) return fail(std::move(wide_stored.error()));
    layer.wide_module = std::move(wide_stored->module);
  }

  layer.problem = layer_problem(canonical, types);
  if (layer.problem.empty()) layer.problem = source_problem(group, canonical, model.shapes);
  layer.input_names = canonical.inputs;
  layer.output_names = canonical.outputs;
  const NameSet open = open_values(group.nodes, model.loaded.proto, model.constants);
  for (std::size_t i = 0; i < canonical.outputs.size(); ++i) {
    const std::string& name = canonical.outputs[i];
    if (open.contains(name) || model.open_contents.contains(name))
      layer.open_outputs.push_back(static_cast<std::uint32_t>(i));
  }
  for (const std::string& name : canonical.inputs)
    layer.inputs.push_back(model.ranges.of_input(group, name));
  for (const std::string& name : canonical.outputs) {
    const auto type = types.find(name);
    layer.outputs.push_back(type != types.end() && type->second.fixed() ? type->second.tensor()
                                                                        : domain::TensorType{});
  }
  layer.draw_order = draw_order_of(layer.input_names);
  const Macs macs = count_macs(group, types);
  layer.mac_count = macs.count;
  layer.mac_breakdown = macs.breakdown;
  return layer;
}

Result<LoadedModel> load_converted(const domain::AnalyzeRequest& request) {
  auto loaded = load_model(request.model_path);
  if (!loaded) return loaded;
  if (auto done = convert_types(*loaded, request.convert, request.dims); !done)
    return fail(std::move(done.error()));
  return loaded;
}

/// The request for a run that shows what is unknown. ONNX Runtime refuses most operators in
/// bfloat16, so there the float form runs: its values have the same names and shapes.
Result<std::string> run_request(const AnalyzeOptions& options, const LoadedModel& loaded,
                                const Shapes& shapes) {
  if (!options.request.convert.bf16)
    return shapes_request(loaded, shapes, *options.shapes_folder, options.blobs);
  domain::AnalyzeRequest in_float = options.request;
  in_float.convert.bf16 = false;
  auto model = load_converted(in_float);
  if (!model) return fail(std::move(model.error()));
  const Shapes float_shapes = infer_shapes(*model, options.request.dims);
  if (float_shapes.unknown.empty())
    return fail(base::ErrorCode::Unavailable,
                "shapes that inference leaves open in bfloat16 cannot be seen in the float model");
  return shapes_request(*model, float_shapes, *options.shapes_folder, options.blobs);
}

/// Whether what is taken apart is something else than the file.
bool is_changed(const domain::AnalyzeRequest& request) {
  return request.convert != domain::Conversion{} || request.subgraph.has_value();
}

void note_range(const domain::SubgraphRange& asked, const domain::NodeRange& range,
                std::vector<std::string>& notes) {
  notes.push_back("[Subgraph] Resolved '" + asked.from + "' -> " + std::to_string(range.first) +
                  ", '" + asked.to + "' -> " + std::to_string(range.last));
}

/// Nothing to test, and no error either (spec section 15).
AnalyzeAnswer skipped(const LoadedModel& loaded, domain::ModelAnalysis analysis) {
  analysis.model_digest = loaded.digest;
  analysis.files = loaded.files;
  analysis.notes = loaded.notes;
  analysis.skipped = "--subgraph-from is node " + std::to_string(analysis.subgraph->first) +
                     ", which comes after --subgraph-to, node " +
                     std::to_string(analysis.subgraph->last);
  return {.analysis = std::move(analysis), .shapes_request = {}};
}

/// A whole model is given all that its signature has: an input that nothing takes is drawn too, and
/// the inputs after it get other values than without it. One that cannot be fed stays out.
std::vector<std::string> all_inputs(const LoadedModel& model, const ValueTypes& types,
                                    const Constants& constants) {
  std::vector<std::string> out;
  for (const pb::ValueInfoProto& input : model.proto.graph().input()) {
    if (constants.find(input.name()) == nullptr && value_problem("", input.name(), types).empty())
      out.push_back(input.name());
  }
  return out;
}

/// The inputs of a whole model are drawn in their own order, not by their names.
void draw_in_model_order(const pb::GraphProto& graph, Layer& layer) {
  std::unordered_map<std::string, int> place;
  for (const pb::ValueInfoProto& input : graph.input())
    place.emplace(input.name(), static_cast<int>(place.size()));
  const auto place_of = [&](std::uint32_t index) {
    const auto found = place.find(layer.input_names[index]);
    return found == place.end() ? static_cast<int>(place.size()) : found->second;
  };
  std::stable_sort(layer.draw_order.begin(), layer.draw_order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return place_of(a) < place_of(b); });
}

}  // namespace

std::string onnx_version() { return pb::LAST_RELEASE_VERSION; }

Result<AnalyzeAnswer> analyze(const AnalyzeOptions& options) {
  auto loaded = load_converted(options.request);
  if (!loaded) return fail(std::move(loaded.error()));
  AnalyzeAnswer out;
  if (options.request.subgraph) {
    auto range = find_range(loaded->proto.graph(), *options.request.subgraph);
    if (!range) return fail(std::move(range.error()));
    note_range(*options.request.subgraph, *range, loaded->notes);
    out.analysis.subgraph = *range;
    if (range->first > range->last) return skipped(*loaded, std::move(out.analysis));
  }
  Shapes shapes = infer_shapes(*loaded, options.request.dims);
  if (options.shapes_answer) {
    add_seen_shapes(*options.shapes_answer, loaded->proto.graph(), shapes, loaded->notes);
  } else if (!shapes.unknown.empty() && options.shapes_folder) {
    auto request = run_request(options, *loaded, shapes);
    if (request) {
      out.shapes_request = std::move(*request);
      return out;
    }
    if (request.error().code != base::ErrorCode::Unavailable)
      return fail(std::move(request.error()));
    loaded->notes.push_back(request.error().message);
  }
  NameSet fed = fed_shapes(*loaded, shapes);
  auto constants = Constants::find_all(*loaded, shapes.types, fed);
  if (!constants) return fail(std::move(constants.error()));
  if (out.analysis.subgraph) {
    *loaded = take_subgraph(*loaded, *out.analysis.subgraph, shapes.types, *constants);
    fed = fed_shapes(*loaded, shapes);  // what comes in from outside has fixed dims now
    constants = Constants::find_all(*loaded, shapes.types, fed);
    if (!constants) return fail(std::move(constants.error()));
  }
  if (options.changed_model && is_changed(options.request)) {
    // The quantizer runs the model, so it needs all of it.
    const auto written = options.request.quantize ? write_model(*loaded, *options.changed_model)
                                                  : write_outline(*loaded, *options.changed_model);
    if (!written) return fail(written.error());
  }

  std::vector<NodeGroup> groups;
  std::vector<std::string> ids;
  NameSet open_shapes;
  NameSet open_contents;
  if (options.request.assignment.empty()) {
    groups = layer_groups(*loaded, options.request.unit);
    ids = layer_ids(groups);
  } else {
    auto split = split_model(*loaded, options.request, *constants, fed);
    if (!split) return fail(std::move(split.error()));
    std::move(split->notes.begin(), split->notes.end(), std::back_inserter(loaded->notes));
    open_shapes = std::move(fed);
    std::vector<const pb::NodeProto*> all;
    for (const pb::NodeProto& node : loaded->proto.graph().node()) all.push_back(&node);
    open_contents = open_values(all, loaded->proto, *constants);
    groups = std::move(split->groups);
    ids = std::move(split->ids);
    out.analysis.segments = std::move(split->segments);
    for (std::size_t i = out.analysis.segments.size(); i < groups.size(); ++i)
      groups[i].also_given = all_inputs(*loaded, shapes.types, *constants);
  }
  const Ranges ranges(*loaded, shapes.types, &*constants);
  DataStore data(options.blobs);
  const Model model{*loaded, shapes,        open_shapes, open_contents,           *constants,
                    ranges,  options.blobs, data,        operator_places(*loaded)};
  std::vector<Result<Layer>> layers(groups.size());
  tbb::parallel_for(std::size_t{0}, groups.size(),
                    [&](std::size_t i) { layers[i] = make_layer(groups[i], ids[i], i, model); });

  out.analysis.model_digest = loaded->digest;
  out.analysis.operators = static_cast<std::uint32_t>(model.places.size());
  out.analysis.files = loaded->files;
  out.analysis.notes = loaded->notes;
  out.analysis.dim_names = std::move(shapes.dim_names);
  for (Result<Layer>& layer : layers) {
    if (!layer) return fail(std::move(layer.error()));
    out.analysis.layers.push_back(std::move(*layer));
  }
  for (std::size_t i = out.analysis.segments.size();
       !out.analysis.segments.empty() && i < out.analysis.layers.size(); ++i)
    draw_in_model_order(loaded->proto.graph(), out.analysis.layers[i]);
  return out;
}

Result<Layer> whole_as_layer(const std::filesystem::path& file, const base::BlobFolder& blobs) {
  auto loaded = load_model(file);
  if (!loaded) return fail(std::move(loaded.error()));
  const Shapes shapes = infer_shapes(*loaded, {});
  const NameSet fed = fed_shapes(*loaded, shapes);
  auto constants = Constants::find_all(*loaded, shapes.types, fed);
  if (!constants) return fail(std::move(constants.error()));
  const Ranges ranges(*loaded, shapes.types, &*constants);
  DataStore data(blobs);
  const NameSet none;
  const Model model{
      *loaded, shapes, none, none, *constants, ranges, blobs, data, operator_places(*loaded)};
  const pb::GraphProto& graph = loaded->proto.graph();
  std::set<std::string> results;
  for (const pb::ValueInfoProto& output : graph.output()) results.insert(output.name());
  NodeGroup group;
  for (const pb::NodeProto& node : graph.node()) {
    if (is_constant_node(node)) continue;
    group.nodes.push_back(&node);
    for (const std::string& name : node.output()) {
      if (results.contains(name)) group.results.push_back(name);
    }
  }
  if (group.nodes.empty()) return fail(base::ErrorCode::InvalidInput, "it has no operators");
  return make_layer(group, layer_ids({group}).front(), 0, model);
}

Result<domain::NodeRange> subgraph_range(const domain::AnalyzeRequest& request) {
  const auto loaded = load_converted(request);
  if (!loaded) return fail(loaded.error());
  return find_range(loaded->proto.graph(), request.subgraph.value_or(domain::SubgraphRange{}));
}

Result<void> save_converted(const domain::AnalyzeRequest& request,
                            const std::filesystem::path& out) {
  const auto loaded = load_converted(request);
  if (!loaded) return fail(loaded.error());
  return write_model(*loaded, out);
}

}  // namespace layerfarm::worker::onnx
