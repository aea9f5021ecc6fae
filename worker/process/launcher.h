// Launcher: the only part of a worker that starts processes. A tiny process with one thread, forked
// before the worker has threads, sockets or models, since forking a large process is slow and
// forking one with threads is unsafe. It makes minders (minder.h), which start the children.
//
//   worker ──socket──> launcher ──fork──> minder ──vfork+exec──> tool ...
//      └──────────────socket per minder──────┘
//
// As root each minder is init of a PID namespace of its own (with its own /proc), so that nothing
// outlives it. Without root they are subreapers: a user namespace would allow the same, but it
// shows files of other users as nobody's, which ssh and others refuse. Everything ends when the
// worker ends, however it ends: the sockets hang up then.
//
// The class is the worker's end. It belongs to the job thread once started.
#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "shared/base/result.h"
#include "worker/process/descriptor.h"
#include "worker/process/minder_messages.h"

namespace layerfarm::worker::process {

/// The worker's end of one minder.
struct MinderLink {
  Descriptor socket;
  Cage cage = Cage::Subreaper;
};

class Launcher {
 public:
  /// `may_cage = false` takes the subreaper's way even where namespaces are allowed (for tests).
  /// Call first thing in main: fails when the process already has a second thread.
  static base::Result<std::unique_ptr<Launcher>> start(bool may_cage = true);
  /// Ends every child, then the launcher; waits for that, but not for ever.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  /// A minder with nothing in hand, for one child. Give it back when the child's end was reported,
  /// or drop it: that ends what it has.
  [[nodiscard]] base::Result<MinderLink> take_minder();
  void give_back(MinderLink minder);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// How children are kept from getting away, for `--describe` and logs.
  [[nodiscard]] Cage cage() const { return cage_; }

 private:
  Launcher(pid_t pid, Descriptor socket) : pid_(pid), socket_(std::move(socket)) {}

  pid_t pid_;
  Descriptor socket_;
  Cage cage_ = Cage::Subreaper;
  std::vector<MinderLink> idle_;
};

}  // namespace layerfarm::worker::process
