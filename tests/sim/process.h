// A worker process: the real WorkerCore, and a job thread that only lets time pass.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/world.h"
#include "worker/core/worker_core.h"

namespace layerfarm::sim {

class Process {
 public:
  struct Settings {
    std::uint32_t pid = 0;
    std::uint32_t host = 0;
    std::vector<coordinator::core::ClassId> abilities;
    std::uint32_t leases = 2;
  };
  using Send = std::function<void(std::uint32_t pid, protocol::FromWorker message)>;
  /// Called once, when the process is no more. `planned`: it left by itself.
  using Ended = std::function<void(std::uint32_t pid, bool planned)>;

  Process(World& world, Settings settings, Send send, Ended ended);

  void start();
  void deliver(const protocol::FromCoordinator& message, std::uint64_t epoch);
  /// As by SIGKILL.
  void kill();
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  enum class Fate : std::uint8_t { Ends, Dies, Stops };

  void feed(worker::core::Event event);
  void later(base::Duration delay, std::function<void()> what);
  void schedule_tick();
  void begin_next();
  void end_job(const protocol::LeasedJob& job, const domain::Outcome& outcome);
  void end_lease();
  void stand_still();
  [[nodiscard]] Fate draw_fate(const SimJob& job);
  [[nodiscard]] domain::Outcome draw_outcome(const protocol::LeasedJob& leased, const SimJob& job);
  [[nodiscard]] base::Duration duration_of(const SimJob& job, domain::Ending ending);

  World& world_;
  Settings settings_;
  Send send_;
  Ended ended_;
  worker::core::WorkerCore core_;
  bool alive_ = true;
  bool bad_ = false;
  std::int64_t slowness_ = 1;
  base::Time still_until_{0};
  base::Time tick_at_{-1};

  // the job thread
  bool busy_ = false;
  std::shared_ptr<const protocol::Lease> lease_;
  std::size_t next_ = 0;
  std::uint64_t running_ =
      0;  ///< counts jobs begun, so that a cancelled one's end is known as stale
  std::set<protocol::AttemptId> cancelled_;
  std::map<std::uint32_t, domain::Ending> endings_;  ///< of this lease, by job
};

/// The blob that a job makes, by name, and back.
[[nodiscard]] base::Digest blob_of(std::uint32_t job);

}  // namespace layerfarm::sim
