#include "worker/ort/log.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <regex>
#include <string>
#include <string_view>

namespace layerfarm::worker::ort {
namespace {

constexpr std::size_t kMostReasons = 20;

/// Shared with threads of the library, which is why this one lock is here.
struct Caught {
  std::mutex mutex;
  bool listening = false;            // guarded by mutex
  std::vector<std::string> reasons;  // guarded by mutex
};

Caught& caught() {
  static Caught one;
  return one;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// QNN's provider appends a running number of its process to our node names (n0_6): what is said of
/// a layer must not depend on the layers before it.
std::string without_counters(const std::string& line) {
  static const std::regex counted("`(n[0-9]+)_[0-9]+`");
  return std::regex_replace(line, counted, "`$1`");
}

}  // namespace

std::vector<std::string> reasons_in(const std::string& message) {
  // QNN's "Failed to add node." says nothing without the line before it, "... failed for node".
  constexpr std::array<std::string_view, 6> kWords = {
      "reason", "not supported", "unsupported", "does not support", "mem_alloc", "failed for node"};
  std::vector<std::string> out;
  for (std::size_t start = 0; start < message.size();) {
    const std::size_t end = std::min(message.find('\n', start), message.size());
    std::string line = message.substr(start, end - start);
    start = end + 1;
    line.erase(0, std::min(line.find_first_not_of(" \t\r"), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    const std::string low = lower(line);
    if (std::none_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return low.find(word) != std::string::npos; }))
      continue;
    if (low.starts_with("reason :"))
      line.erase(0, std::min(line.find_first_not_of(' ', 8), line.size()));
    // A heading's content is in the lines after it.
    if (!line.empty() && line.back() != ':') out.push_back(without_counters(line));
  }
  return out;
}

Listener::Listener() {
  const std::lock_guard lock(caught().mutex);
  caught().listening = true;
  caught().reasons.clear();
}

Listener::~Listener() {
  const std::lock_guard lock(caught().mutex);
  caught().listening = false;
}

std::vector<std::string> Listener::reasons() const {
  const std::lock_guard lock(caught().mutex);
  return caught().reasons;
}

void ORT_API_CALL log_line(void* /*param*/, OrtLoggingLevel severity, const char* /*category*/,
                           const char* /*log_id*/, const char* place, const char* message) {
  if (severity >= ORT_LOGGING_LEVEL_ERROR) std::fprintf(stderr, "%s: %s\n", place, message);
  Caught& all = caught();
  const std::lock_guard lock(all.mutex);
  if (!all.listening) return;
  for (std::string& reason : reasons_in(message)) {
    if (all.reasons.size() >= kMostReasons) return;
    if (std::find(all.reasons.begin(), all.reasons.end(), reason) == all.reasons.end())
      all.reasons.push_back(std::move(reason));
  }
}

}  // namespace layerfarm::worker::ort
