#include "worker/onnx/segment_order.h"

#include <algorithm>
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

}  // namespace

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
