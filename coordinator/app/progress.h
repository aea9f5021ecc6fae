// Progress: the live line of a run (issue: done/total, counts, what runs now, rate, time left).
// Pure text; the console decides whether it is shown.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "shared/base/time.h"
#include "shared/domain/verdict.h"

namespace layerfarm::coordinator::app {

class Progress {
 public:
  /// `total` may grow while models are still being read.
  void add_total(std::uint64_t cases) { total_ += cases; }
  /// Known from before the start: counted as done, left out of the rate.
  void add_known(std::uint64_t cases) { known_ += cases; }
  void settled(domain::Status status);
  void settled_without_verdict() { ++other_; }
  /// A worker works on something else; empty = idle.
  void activity(const std::string& worker, const std::string& what);

  [[nodiscard]] std::uint64_t done() const { return known_ + fresh(); }
  [[nodiscard]] std::uint64_t total() const { return total_; }
  /// `elapsed` since the run began to work.
  [[nodiscard]] std::string line(base::Duration elapsed) const;

 private:
  [[nodiscard]] std::uint64_t fresh() const { return success_ + difference_ + error_ + other_; }
  std::uint64_t total_ = 0;
  std::uint64_t known_ = 0;
  std::uint64_t success_ = 0;
  std::uint64_t difference_ = 0;
  std::uint64_t error_ = 0;
  std::uint64_t other_ = 0;
  std::map<std::string, std::string> activities_;
};

/// "1:05", "2:03:04".
[[nodiscard]] std::string clock_text(base::Duration duration);

}  // namespace layerfarm::coordinator::app
