// ValueScope: a graph under conversion with the graphs around it: what its values are, which names
// are free, and its constants, wherever their bytes are. For this folder only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "worker/onnx/load.h"
#include "worker/onnx/proto.h"

namespace layerfarm::worker::onnx {

/// Names of all values of a model, in every graph.
class ValueNames {
 public:
  explicit ValueNames(const pb::GraphProto& graph) { add(graph); }
  /// `name`, or with a number where that is taken; taken from now on.
  [[nodiscard]] std::string fresh(const std::string& name);

 private:
  void add(const pb::GraphProto& graph);
  std::unordered_set<std::string> taken_;
};

class ValueScope {
 public:
  /// `model`: of the main graph, whose constants it holds; null in a body.
  ValueScope(pb::GraphProto& graph, LoadedModel* model, const ValueScope* outer);

  [[nodiscard]] pb::GraphProto& graph() const { return graph_; }
  [[nodiscard]] bool is_main() const { return model_ != nullptr; }
  /// The scope, this one or one around it, that has the value; null: none has.
  [[nodiscard]] const ValueScope* owner(const std::string& name) const;
  /// Element type of a tensor anywhere in reach; 0: unknown.
  [[nodiscard]] int dtype(const std::string& name) const;
  /// Whether it is known to be no tensor (a sequence, an optional).
  [[nodiscard]] bool is_no_tensor(const std::string& name) const;
  [[nodiscard]] bool is_initializer(const std::string& name) const {
    return initializers_.contains(name);
  }
  [[nodiscard]] bool is_output(const std::string& name) const { return outputs_.contains(name); }

  [[nodiscard]] base::Result<Constant> constant(const std::string& name) const;
  /// Puts constants in the place of an initializer, or takes it away.
  void replace_initializers(
      const std::unordered_map<std::string, std::vector<std::pair<std::string, Constant>>>& by)
      const;

 private:
  static constexpr int kNoTensor = -1;
  void take_type(const std::string& name, const pb::TypeProto& type);

  pb::GraphProto& graph_;
  LoadedModel* model_;
  const ValueScope* outer_;
  std::unordered_map<std::string, int> types_;
  std::unordered_set<std::string> own_;
  std::unordered_set<std::string> initializers_;
  std::unordered_set<std::string> outputs_;
};

/// Renames what a graph and its bodies use, wherever no graph inside has a value of the same name.
void rename_uses(pb::GraphProto& graph, const std::unordered_map<std::string, std::string>& names);

/// A Cast node.
[[nodiscard]] pb::NodeProto make_cast(const std::string& from, const std::string& to, int dtype);
void set_int_attribute(pb::NodeProto& node, const std::string& name, std::int64_t value);

}  // namespace layerfarm::worker::onnx
