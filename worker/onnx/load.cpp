#include "worker/onnx/load.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_set>

#include "worker/onnx/external_data.h"
#include "worker/onnx/mapped_file.h"

namespace layerfarm::worker::onnx {
namespace {

namespace fs = std::filesystem;
using base::BytesView;
using base::ErrorCode;
using base::fail;
using base::Result;

/// Data of initializers up to this size stays in the message too, since shape inference reads it.
constexpr std::size_t kKeptForInference = 8192;

// --- the bytes
// -------------------------------------------------------------------------------------------------------

std::optional<std::uint64_t> read_varint(BytesView bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at >= bytes.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
  return std::nullopt;
}

/// Fields of ModelProto that a file may begin with, and their wire types.
bool begins_like_a_model(std::uint64_t field, std::uint64_t wire_type) {
  switch (field) {
    case 1:
    case 5:
      return wire_type == 0;
    case 2:
    case 3:
    case 4:
    case 6:
    case 7:
    case 8:
    case 14:
    case 20:
    case 25:
    case 26:
      return wire_type == 2;
    default:
      return false;
  }
}

/// Walks the outermost fields: tells a cut file from one that never was a model, which the parser
/// cannot.
Result<void> check_outline(BytesView bytes) {
  if (bytes.empty()) return fail(ErrorCode::InvalidInput, "is empty");
  if (bytes.starts_with("version https://git-lfs")) {
    return fail(ErrorCode::InvalidInput,
                "is a Git LFS pointer, not the model itself; fetch the model with 'git lfs pull'");
  }
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t begin = at;
    const auto tag = read_varint(bytes, at);
    const std::uint64_t field = tag.value_or(0) >> 3;
    const std::uint64_t wire_type = tag.value_or(0) & 7U;
    if (begin == 0 && !begins_like_a_model(field, wire_type))
      return fail(ErrorCode::InvalidInput, "is not an ONNX model");
    const std::string place = "at byte " + std::to_string(begin);
    const auto truncated = [&](std::uint64_t need) {
      return fail(ErrorCode::InvalidInput, "is truncated: it ends at byte " +
                                               std::to_string(bytes.size()) + ", the field " +
                                               place + " needs " + std::to_string(need) + " more");
    };
    std::uint64_t length = 0;
    if (!tag) return truncated(1);
    if (field == 0 || wire_type == 3 || wire_type == 4 || wire_type > 5)
      return fail(ErrorCode::InvalidInput, "is damaged " + place);
    if (wire_type == 1) length = 8;
    if (wire_type == 5) length = 4;
    if (wire_type == 0 || wire_type == 2) {
      const auto value = read_varint(bytes, at);
      if (!value && at >= bytes.size()) return truncated(1);
      if (!value) return fail(ErrorCode::InvalidInput, "is damaged " + place);
      if (wire_type == 2) length = *value;
    }
    if (length > bytes.size() - at) return truncated(length - (bytes.size() - at));
    at += length;
  }
  return {};
}

// --- the parts
// -------------------------------------------------------------------------------------------------------

using TensorVisitor = std::function<Result<void>(pb::TensorProto&)>;

Result<void> visit_tensors(pb::GraphProto& graph, const TensorVisitor& visit);

Result<void> visit_tensors(pb::NodeProto& node, const TensorVisitor& visit) {
  for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
    std::vector<pb::TensorProto*> tensors;
    if (attribute.has_t()) tensors.push_back(attribute.mutable_t());
    for (pb::TensorProto& tensor : *attribute.mutable_tensors()) tensors.push_back(&tensor);
    if (attribute.has_sparse_tensor()) {
      tensors.push_back(attribute.mutable_sparse_tensor()->mutable_values());
      tensors.push_back(attribute.mutable_sparse_tensor()->mutable_indices());
    }
    for (pb::TensorProto* tensor : tensors) {
      if (auto done = visit(*tensor); !done) return done;
    }
    if (attribute.has_g()) {
      if (auto done = visit_tensors(*attribute.mutable_g(), visit); !done) return done;
    }
    for (pb::GraphProto& graph : *attribute.mutable_graphs()) {
      if (auto done = visit_tensors(graph, visit); !done) return done;
    }
  }
  return {};
}

Result<void> visit_tensors(pb::GraphProto& graph, const TensorVisitor& visit) {
  for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
    if (auto done = visit(tensor); !done) return done;
  }
  for (pb::SparseTensorProto& sparse : *graph.mutable_sparse_initializer()) {
    if (auto done = visit(*sparse.mutable_values()); !done) return done;
    if (auto done = visit(*sparse.mutable_indices()); !done) return done;
  }
  for (pb::NodeProto& node : *graph.mutable_node()) {
    if (auto done = visit_tensors(node, visit); !done) return done;
  }
  return {};
}

Result<void> check_versions(const pb::ModelProto& model) {
  const auto invalid = [](std::string why) {
    return fail(ErrorCode::InvalidInput, std::move(why));
  };
  if (!model.has_graph() || !model.has_ir_version()) {
    return invalid(std::string("is not an ONNX model: it has no ") +
                   (model.has_graph() ? "IR version" : "graph"));
  }
  std::int64_t version = opset_version(model, "");
  if (version == 0 && model.opset_import().empty())
    version = 1;  // files from before operator sets had numbers
  const bool uses_default =
      std::any_of(model.graph().node().begin(), model.graph().node().end(), in_default_domain);
  if (version == 0 && uses_default)
    return invalid("uses ONNX's own operators but does not say which version of them (opset)");
  if (version != 0 && version < kOldestOpset) {
    return invalid("has opset " + std::to_string(version) + ", the oldest that is read is " +
                   std::to_string(kOldestOpset) +
                   "; convert it with ONNX's version converter first");
  }
  if (version > newest_opset()) {
    return invalid("has opset " + std::to_string(version) +
                   ", the newest that this program knows is " + std::to_string(newest_opset()));
  }
  return {};
}

/// Moves the values of the main graph's initializers out of the message.
Result<void> take_initializers(
    LoadedModel& model, const std::unordered_map<const pb::TensorProto*, Constant>& external) {
  pb::GraphProto& graph = *model.proto.mutable_graph();
  for (pb::TensorProto& tensor : *graph.mutable_initializer()) {
    const std::string name = tensor.name();
    if (name.empty()) return fail(ErrorCode::InvalidInput, "has an initializer without a name");
    auto found = external.find(&tensor);
    auto value = found != external.end() ? Result<Constant>(found->second) : take_constant(tensor);
    if (!value) return fail(std::move(value.error()));
    if (model.initializers.contains(name)) {
      return fail(ErrorCode::InvalidInput, "has two initializers named '" + name + "'");
    }
    hold_initializer(model, tensor, name, std::move(*value));
  }
  for (const pb::SparseTensorProto& sparse : graph.sparse_initializer()) {
    auto value = read_sparse(sparse);
    if (!value) return fail(std::move(value.error()));
    if (!model.initializers.emplace(sparse.values().name(), std::move(*value)).second) {
      return fail(ErrorCode::InvalidInput,
                  "has two initializers named '" + sparse.values().name() + "'");
    }
  }
  return {};
}

// --- names and order
// -------------------------------------------------------------------------------------------------

std::string node_text(const pb::NodeProto& node) {
  const std::string& name =
      node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  return node.op_type() + " '" + name + "'";
}

/// What each node waits for: indices of nodes, each once.
Result<std::vector<std::vector<std::size_t>>> dependencies(const LoadedModel& model) {
  const pb::GraphProto& graph = model.proto.graph();
  constexpr std::size_t kGiven = std::numeric_limits<std::size_t>::max();
  std::unordered_map<std::string, std::size_t> makers;
  for (const auto& [name, value] : model.initializers) makers.emplace(name, kGiven);
  std::unordered_set<std::string> inputs;
  for (const pb::ValueInfoProto& input : graph.input()) {
    if (!inputs.insert(input.name()).second)
      return fail(ErrorCode::InvalidInput, "has two inputs named '" + input.name() + "'");
    makers.emplace(input.name(), kGiven);
  }
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& output : graph.node(i).output()) {
      if (output.empty()) continue;
      const auto [entry, fresh] = makers.emplace(output, static_cast<std::size_t>(i));
      if (fresh) continue;
      const std::string other =
          entry->second == kGiven
              ? "an input or initializer"
              : "the node " + node_text(graph.node(static_cast<int>(entry->second)));
      return fail(ErrorCode::InvalidInput, "has two values named '" + output + "': from the node " +
                                               node_text(graph.node(i)) + " and from " + other);
    }
  }
  std::vector<std::vector<std::size_t>> out(static_cast<std::size_t>(graph.node_size()));
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string& name : used_names(graph.node(i))) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) {
        return fail(ErrorCode::InvalidInput, "is damaged: the node " + node_text(graph.node(i)) +
                                                 " uses '" + name + "', which nothing makes");
      }
      if (maker->second != kGiven) out[static_cast<std::size_t>(i)].push_back(maker->second);
    }
  }
  for (const pb::ValueInfoProto& output : graph.output()) {
    if (!makers.contains(output.name()))
      return fail(ErrorCode::InvalidInput,
                  "is damaged: nothing makes its output '" + output.name() + "'");
  }
  return out;
}

/// Puts nodes where they can be computed one after the other; keeps the file's order wherever it
/// can.
Result<void> sort_nodes(LoadedModel& model) {
  auto waits = dependencies(model);
  if (!waits) return fail(std::move(waits.error()));
  bool sorted = true;
  for (std::size_t i = 0; i < waits->size() && sorted; ++i) {
    sorted = std::all_of((*waits)[i].begin(), (*waits)[i].end(),
                         [&](std::size_t before) { return before < i; });
  }
  if (sorted) return {};

  const std::size_t count = waits->size();
  std::vector<std::vector<std::size_t>> followers(count);
  std::vector<std::size_t> open(count);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i) {
    open[i] = (*waits)[i].size();
    for (const std::size_t before : (*waits)[i]) followers[before].push_back(i);
    if (open[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t follower : followers[next]) {
      if (--open[follower] == 0) ready.push(follower);
    }
  }
  auto& nodes = *model.proto.mutable_graph()->mutable_node();
  if (order.size() != count) {
    const auto stuck = static_cast<int>(
        std::find_if(open.begin(), open.end(), [](std::size_t n) { return n > 0; }) - open.begin());
    return fail(ErrorCode::InvalidInput,
                "has a cycle: the node " + node_text(nodes[stuck]) + " depends on itself");
  }
  std::vector<pb::NodeProto*> taken(count);
  nodes.ExtractSubrange(0, static_cast<int>(count), taken.data());
  for (const std::size_t i : order) nodes.AddAllocated(taken[i]);
  model.notes.emplace_back(
      "the file's nodes are not in an order in which they can be computed; they were sorted");
  return {};
}

}  // namespace

std::int64_t newest_opset() {
  return pb::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second;
}

void hold_initializer(LoadedModel& model, pb::TensorProto& tensor, const std::string& name,
                      Constant value) {
  tensor.Clear();
  tensor.set_name(name);
  if (value.is_string() || value.size() <= kKeptForInference) {
    write_constant(value, tensor);
  } else {
    tensor.set_data_type(static_cast<std::int32_t>(value.type.dtype));
    tensor.mutable_dims()->Assign(value.type.dims.begin(), value.type.dims.end());
  }
  model.initializers.insert_or_assign(name, std::move(value));
}

Result<LoadedModel> load_model(const fs::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  const BytesView bytes = (*file)->bytes();
  if (auto fine = check_outline(bytes); !fine) return fail(std::move(fine.error()));
  if (bytes.size() > kMaxTensorBytes) {
    return fail(ErrorCode::InvalidInput,
                "is larger than 2 GiB, protobuf's own limit; keep its weights in external data");
  }
  LoadedModel model;
  if (!model.proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(ErrorCode::InvalidInput, "is damaged: it does not parse as an ONNX model");
  }
  model.files.push_back({path.filename().string(), base::digest_of(bytes), bytes.size()});
  file->reset();
  if (auto fine = check_versions(model.proto); !fine) return fail(std::move(fine.error()));

  ExternalData external(path.has_parent_path() ? path.parent_path() : fs::path("."));
  std::unordered_map<const pb::TensorProto*, Constant> mapped;
  for (const pb::TensorProto& tensor : model.proto.graph().initializer()) {
    if (tensor.data_location() != pb::TensorProto::EXTERNAL) continue;
    auto value = external.read(tensor);
    if (!value) return fail(std::move(value.error()));
    mapped.emplace(&tensor, std::move(*value));
  }
  const TensorVisitor bring_in = [&](pb::TensorProto& tensor) -> Result<void> {
    if (tensor.data_location() != pb::TensorProto::EXTERNAL || mapped.contains(&tensor)) return {};
    auto value = external.read(tensor);
    if (!value) return fail(std::move(value.error()));
    tensor.clear_external_data();
    tensor.clear_data_location();
    write_constant(*value, tensor);
    return {};
  };
  if (auto done = visit_tensors(*model.proto.mutable_graph(), bring_in); !done)
    return fail(std::move(done.error()));
  for (pb::FunctionProto& function : *model.proto.mutable_functions()) {
    for (pb::NodeProto& node : *function.mutable_node()) {
      if (auto done = visit_tensors(node, bring_in); !done) return fail(std::move(done.error()));
    }
  }
  if (auto done = take_initializers(model, mapped); !done) return fail(std::move(done.error()));
  if (auto done = sort_nodes(model); !done) return fail(std::move(done.error()));

  model.digest = model.files.front().digest;
  if (const auto files = external.files(); !files.empty()) {
    base::Hasher hasher("layerfarm.model.1");
    hasher.add(model.digest);
    for (const domain::ReadFile& read : files) {
      hasher.add(read.path).add(read.digest);
      model.files.push_back(read);
    }
    model.digest = hasher.finish();
  }
  return model;
}

}  // namespace layerfarm::worker::onnx
