// PrintedKeeper: keeps the first and the last part of what a child prints, whatever the amount. Job
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shared/base/bytes.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::process {

class PrintedKeeper {
 public:
  static constexpr std::size_t kPart = std::size_t{64} << 10;
  /// Keeps `part` bytes of the start and `part` bytes of the end.
  explicit PrintedKeeper(std::size_t part = kPart) : part_(part) {}

  void add(base::BytesView bytes);
  [[nodiscard]] std::uint64_t bytes() const { return total_; }
  /// Both parts, with a line between them that says how many bytes were dropped, when some were.
  /// Starts over.
  [[nodiscard]] Printed take();

 private:
  std::size_t part_;
  std::uint64_t total_ = 0;
  std::string head_;
  std::string tail_;  // at most 2 * part_ bytes; only the last part_ of them count
};

}  // namespace layerfarm::worker::process
