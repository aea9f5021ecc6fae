// Minder: a process of the launcher that has at most one child at a time and answers for everything
// that descends from it. It starts the child, samples the memory of the whole tree, ends it at the
// time or memory bound or when the worker says so, waits until nothing is left of it, and only then
// reports. When the worker or the launcher is gone, it ends what it has and leaves. Forked by the
// launcher (launcher.h); one thread.
#pragma once

#include "worker/process/descriptor.h"
#include "worker/process/minder_messages.h"

namespace layerfarm::worker::process {

/// Runs a minder in the calling process, which must be a fresh fork of the launcher; first in a new
/// PID namespace for Cage::Namespace. `worker` is the socket to the worker, `lifeline` a pipe that
/// hangs up when the launcher ends. Descriptors 0 to 3 must be /dev/null. Never returns.
[[noreturn]] void minder_main(Descriptor worker, Descriptor lifeline, Cage cage);

}  // namespace layerfarm::worker::process
