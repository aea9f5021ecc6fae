// What ONNX Runtime and its providers log: errors go to standard error as usual; while somebody
// listens, the lines that say why a node was not taken are caught at every level, since providers
// hide their reasons among the debug output.
#pragma once

#include <string>
#include <vector>

#include <onnxruntime_cxx_api.h>

namespace layerfarm::worker::ort {

/// Catches reasons from its making to its end. One at a time.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// Each once, in order of their first appearance.
  [[nodiscard]] std::vector<std::string> reasons() const;
};

/// To be given to the environment. Called by any thread of the library's.
void ORT_API_CALL log_line(void* param, OrtLoggingLevel severity, const char* category,
                           const char* log_id, const char* place, const char* message);

/// The lines of a message that say why something was not done; empty for all else.
[[nodiscard]] std::vector<std::string> reasons_in(const std::string& message);

}  // namespace layerfarm::worker::ort
