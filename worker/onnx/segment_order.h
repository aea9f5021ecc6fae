// In which order the parts of a model run, each on one executor: as few switches as a quick search
// finds. Pure; knows no ONNX.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace layerfarm::worker::onnx {

/// What runs on one executor without a switch.
struct Part {
  std::size_t executor = 0;
  std::vector<std::size_t> items;  ///< in rising order, in which they can run
};

/// Groups of items that belong into one part each, in an order in which they can run: both items of
/// each pair, and what lies between items of a group. Items of a group are in rising order.
[[nodiscard]] std::vector<std::vector<std::size_t>> unite(
    const std::vector<std::vector<std::size_t>>& needs,
    const std::vector<std::pair<std::size_t, std::size_t>>& pairs);

/// Items are numbered so that each comes after all that it needs. Each part takes every item of its
/// executor that can run by then, so between two parts the executor changes. The order begins with
/// each executor in turn and goes on with the one that gets furthest; the fewest parts win, then
/// the lower executor.
[[nodiscard]] std::vector<Part> order_parts(const std::vector<std::vector<std::size_t>>& needs,
                                            const std::vector<std::size_t>& executor_of);

}  // namespace layerfarm::worker::onnx
