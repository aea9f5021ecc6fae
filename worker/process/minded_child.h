// MindedChild: one child of a minder as the worker sees it: its output, its end, and every wait for
// either bounded. What run() and residents have in common. Job thread.
#pragma once

#include <chrono>
#include <optional>

#include "worker/process/child_output.h"
#include "worker/process/launcher.h"
#include "worker/process/process_runner.h"

namespace layerfarm::worker::process {

class MindedChild {
 public:
  /// Starts it; a resident's start is waited for, any other shows in its end. `channel`: what
  /// becomes its descriptor 3, or -1.
  static base::Result<MindedChild> start(Launcher& launcher, const Command& command, int channel);
  MindedChild(MindedChild&&) noexcept = default;
  MindedChild& operator=(MindedChild&&) = delete;
  ~MindedChild();

  /// What woke the caller of wait().
  struct Woken {
    bool ended = false;  ///< its end was reported: `end()` is there
    bool cancelled = false;
    bool extra = false;  ///< the caller's own descriptor is ready
  };
  /// Waits until something happens, or `until`. Output is kept on the way, and ends the child when
  /// it is too much.
  Woken wait(std::chrono::steady_clock::time_point until, const CancelToken* cancel,
             int extra_fd = -1, short extra_events = 0);
  /// Asks for its end; wait() then tells when it is there.
  void order_end(Ended why);
  /// Orders its end unless it ended already, and waits for it.
  void end_and_wait(Ended why);

  [[nodiscard]] bool ended() const { return end_.has_value(); }
  /// Looks for a reported end without waiting.
  bool check_ended();
  /// How it ended, with what it printed since the last take. ended() must hold.
  [[nodiscard]] ProcessResult result();
  [[nodiscard]] std::int64_t memory_bytes();
  [[nodiscard]] ChildOutput& output() { return output_; }

 private:
  MindedChild(Launcher& launcher, MinderLink minder, ChildOutput output, Command command)
      : launcher_(&launcher),
        minder_(std::move(minder)),
        output_(std::move(output)),
        command_(std::move(command)) {}
  void read_report();
  void on_lost(const base::Error& error);

  Launcher* launcher_;
  MinderLink minder_;
  ChildOutput output_;
  Command command_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::chrono::system_clock::time_point started_at_ = std::chrono::system_clock::now();
  std::optional<ChildEnded> end_;
  std::optional<std::chrono::steady_clock::time_point> end_ordered_;
  bool over_output_ = false;
};

}  // namespace layerfarm::worker::process
