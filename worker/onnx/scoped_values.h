// ScopedValues: what a walk over a model's graph knows of each value, by the scopes that ONNX has:
// a body sees what is around it, a function only what it is called with. For this folder only.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace layerfarm::worker::onnx {

template <typename Known>
class ScopedValues {
 public:
  using Scope = std::unordered_map<std::string, Known>;

  ScopedValues() { enter_body(); }

  void enter_body() { levels_.emplace_back(); }
  void enter_function(Scope formals) {
    levels_.push_back({.values = std::move(formals), .sees_outer = false});
  }
  void leave() { levels_.pop_back(); }

  /// In the innermost scope.
  void set(const std::string& name, Known known) { levels_.back().values[name] = std::move(known); }
  /// Null: no scope in sight has it.
  [[nodiscard]] const Known* find(const std::string& name) const {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      if (const auto found = level->values.find(name); found != level->values.end())
        return &found->second;
      if (!level->sees_outer) break;
    }
    return nullptr;
  }

  [[nodiscard]] bool in_main_graph() const { return levels_.size() == 1; }
  /// A hostile file may nest so that a walk into every call never ends. Where one of the two says
  /// no, nothing is known.
  [[nodiscard]] bool may_enter() const { return levels_.size() <= kDeepest; }
  [[nodiscard]] bool may_walk_on() { return ++walked_ <= kMostNodes; }

 private:
  static constexpr std::size_t kDeepest = 20;
  static constexpr std::size_t kMostNodes = 1'000'000;
  struct Level {
    Scope values;
    bool sees_outer = true;
  };
  std::vector<Level> levels_;
  std::size_t walked_ = 0;
};

}  // namespace layerfarm::worker::onnx
