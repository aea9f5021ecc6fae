#include "coordinator/app/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace layerfarm::coordinator::app {

void Progress::settled(domain::Status status) {
  switch (status) {
    case domain::Status::Success:
      ++success_;
      break;
    case domain::Status::Difference:
      ++difference_;
      break;
    case domain::Status::Error:
      ++error_;
      break;
  }
}

void Progress::activity(const std::string& worker, const std::string& what) {
  if (what.empty()) {
    activities_.erase(worker);
  } else {
    activities_[worker] = what;
  }
}

std::string Progress::line(base::Duration elapsed) const {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  std::string out =
      fmt::format("{}/{}  ok {}  diff {}  err {}", done(), total_, success_, difference_, error_);
  if (fresh() > 0 && seconds > 0) {
    const double rate = static_cast<double>(fresh()) / seconds;
    out += fmt::format("  {:.{}f}/s", rate, rate < 10 ? 1 : 0);
    const std::uint64_t left = total_ - std::min(total_, done());
    const auto time_left = std::chrono::duration_cast<base::Duration>(
        std::chrono::duration<double>(static_cast<double>(left) / rate));
    if (left > 0) out += "  " + clock_text(time_left) + " left";
  }
  for (const auto& [worker, what] : activities_) out += "  " + worker + ":" + what;
  return out;
}

std::string clock_text(base::Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace layerfarm::coordinator::app
