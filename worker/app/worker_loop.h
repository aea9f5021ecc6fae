// WorkerLoop: sockets, signals and time on one side, the worker core and the job thread on the
// other. Owns the socket; the loop thread.
#pragma once

#include <string>

#include "shared/protocol/messages.h"
#include "worker/app/job_thread.h"

namespace layerfarm::worker::app {

struct LoopSettings {
  std::string endpoint;  ///< where the coordinator listens
  protocol::Hello self;  ///< what this worker says of itself
  int parent = 0;        ///< leave at once when this process is gone; 0 = nobody's child
  int launcher = 0;      ///< end with an error when this process is gone: no tool can be started
};

/// Serves the coordinator until it says Stop, a signal comes or the parent is gone. SIGTERM and
/// SIGINT must be blocked in all threads. `token` is what the lease function's waits watch. Returns
/// the exit code.
int serve(const LoopSettings& settings, process::CancelToken& token, LeaseFunction work);

}  // namespace layerfarm::worker::app
