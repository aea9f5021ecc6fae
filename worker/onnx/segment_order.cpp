#include "worker/onnx/segment_order.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

namespace layerfarm::worker::onnx {
namespace {

class Order {
 public:
  Order(const std::vector<std::vector<std::size_t>>& needs,
        const std::vector<std::size_t>& executor_of)
      : executor_of_(executor_of), readers_(needs.size()), open_(needs.size()) {
    std::size_t executors = 0;
    for (std::size_t item = 0; item < needs.size(); ++item) {
      executors = std::max(executors, executor_of[item] + 1);
      open_[item] = needs[item].size();
      for (const std::size_t need : needs[item]) readers_[need].push_back(item);
    }
    ready_.resize(executors);
    for (std::size_t item = 0; item < needs.size(); ++item) {
      if (open_[item] == 0) ready_[executor_of[item]].push_back(item);
    }
  }

  [[nodiscard]] bool done() const { return taken_ == open_.size(); }
  [[nodiscard]] bool can_begin(std::size_t executor) const { return !ready_[executor].empty(); }
  [[nodiscard]] std::size_t executors() const { return ready_.size(); }

  /// The executor that takes the most items now.
  [[nodiscard]] std::size_t furthest() const {
    std::optional<std::size_t> best;
    std::size_t most = 0;
    std::size_t able = 0;
    for (std::size_t e = 0; e < ready_.size(); ++e) {
      if (!can_begin(e)) continue;
      ++able;
      if (!best) best = e;
    }
    if (able < 2) return *best;
    for (std::size_t e = *best; e < ready_.size(); ++e) {
      if (!can_begin(e)) continue;
      const std::size_t reach = reach_of(e);
      if (reach > most) {
        most = reach;
        best = e;
      }
    }
    return *best;
  }

  Part take(std::size_t executor) {
    Part out{executor, std::exchange(ready_[executor], {})};
    for (std::size_t next = 0; next < out.items.size(); ++next) {
      for (const std::size_t reader : readers_[out.items[next]]) {
        if (--open_[reader] > 0) continue;
        const std::size_t e = executor_of_[reader];
        (e == executor ? out.items : ready_[e]).push_back(reader);
      }
    }
    taken_ += out.items.size();
    std::sort(out.items.begin(), out.items.end());
    return out;
  }

 private:
  /// How many items it would take, without taking them.
  [[nodiscard]] std::size_t reach_of(std::size_t executor) const {
    std::vector<std::size_t> items = ready_[executor];
    std::unordered_map<std::size_t, std::size_t> fewer;
    for (std::size_t next = 0; next < items.size(); ++next) {
      for (const std::size_t reader : readers_[items[next]]) {
        if (++fewer[reader] == open_[reader] && executor_of_[reader] == executor)
          items.push_back(reader);
      }
    }
    return items.size();
  }

  const std::vector<std::size_t>& executor_of_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> open_;                ///< per item: needs that were not taken yet
  std::vector<std::vector<std::size_t>> ready_;  ///< per executor
  std::size_t taken_ = 0;
};

/// Strongly connected components by Tarjan's algorithm, with a stack of its own: models are deeper
/// than that of a thread.
class Components {
 public:
  explicit Components(std::vector<std::vector<std::size_t>> edges)
      : edges_(std::move(edges)),
        index_(edges_.size(), kNone),
        low_(edges_.size()),
        open_(edges_.size(), false) {}

  /// Each after those that its edges lead to.
  std::vector<std::vector<std::size_t>> go() {
    for (std::size_t item = 0; item < edges_.size(); ++item) {
      if (index_[item] == kNone) visit(item);
    }
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void visit(std::size_t root) {
    std::vector<std::pair<std::size_t, std::size_t>> path;  // item, its next edge
    const auto enter = [&](std::size_t item) {
      index_[item] = low_[item] = seen_++;
      open_[item] = true;
      stack_.push_back(item);
      path.emplace_back(item, 0);
    };
    enter(root);
    while (!path.empty()) {
      const std::size_t item = path.back().first;
      if (path.back().second < edges_[item].size()) {
        const std::size_t to = edges_[item][path.back().second++];
        if (index_[to] == kNone) {
          enter(to);
        } else if (open_[to]) {
          low_[item] = std::min(low_[item], index_[to]);
        }
        continue;
      }
      if (low_[item] == index_[item]) close(item);
      path.pop_back();
      if (!path.empty()) {
        std::size_t& low = low_[path.back().first];
        low = std::min(low, low_[item]);
      }
    }
  }

  /// All that was entered since `item` and is still open is one component with it.
  void close(std::size_t item) {
    const auto first = std::find(stack_.begin(), stack_.end(), item);
    std::vector<std::size_t>& component = out_.emplace_back(first, stack_.end());
    stack_.erase(first, stack_.end());
    std::sort(component.begin(), component.end());
    for (const std::size_t member : component) open_[member] = false;
  }

  std::vector<std::vector<std::size_t>> edges_;
  std::vector<std::size_t> index_;
  std::vector<std::size_t> low_;
  std::vector<bool> open_;
  std::vector<std::size_t> stack_;
  std::size_t seen_ = 0;
  std::vector<std::vector<std::size_t>> out_;
};

}  // namespace

std::vector<std::vector<std::size_t>> unite(
    const std::vector<std::vector<std::size_t>>& needs,
    const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  // Two items that need each other are of one component, and with them what lies between.
  std::vector<std::vector<std::size_t>> edges = needs;
  for (const auto& [a, b] : pairs) {
    edges[a].push_back(b);
    edges[b].push_back(a);
  }
  return Components(std::move(edges)).go();
}

std::vector<Part> order_parts(const std::vector<std::vector<std::size_t>>& needs,
                              const std::vector<std::size_t>& executor_of) {
  std::vector<Part> best;
  const Order start(needs, executor_of);
  for (std::size_t first = 0; first < start.executors(); ++first) {
    if (!start.can_begin(first)) continue;
    Order order = start;
    std::vector<Part> parts = {order.take(first)};
    while (!order.done()) parts.push_back(order.take(order.furthest()));
    if (best.empty() || parts.size() < best.size()) best = std::move(parts);
  }
  return best;
}

}  // namespace layerfarm::worker::onnx
