#include "tests/support/worker/fake_process_runner.h"

#include <poll.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <utility>

#include "worker/process/printed_keeper.h"

namespace layerfarm::test {
namespace process = worker::process;
using process::Ended;
namespace {

std::string program_name(const process::Command& command) {
  return command.argv.empty() ? "" : std::filesystem::path(command.argv[0]).filename().string();
}

process::Printed printed(const std::string& text) {
  process::PrintedKeeper keeper;
  keeper.add(text);
  return keeper.take();
}

/// How the bounds would have ended it. `wall` as the caller of run() or call() gave it.
process::ProcessResult ended(const FakeRun& run, const process::Bounds& bounds, base::Duration wall,
                             bool cancelled) {
  process::ProcessResult out;
  out.output = printed(run.output);
  out.errors = printed(run.errors);
  out.peak_memory_bytes = run.memory_bytes;
  out.wall_us = std::chrono::duration_cast<std::chrono::microseconds>(run.takes).count();
  const auto over = [](std::int64_t value, std::int64_t bound) {
    return bound > 0 && value > bound;
  };
  if (over(run.memory_bytes, bounds.memory_bytes)) {
    out.ended = Ended::OverMemory;
  } else if (over(static_cast<std::int64_t>(out.output.bytes + out.errors.bytes),
                  bounds.output_bytes)) {
    out.ended = Ended::OverOutput;
  } else if (over(run.file_bytes, bounds.file_bytes)) {
    out.ended = Ended::OverFile;
  } else if (wall.count() > 0 && (run.never_ends || run.takes > wall)) {
    out.ended = Ended::TimedOut;
    out.wall_us = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  } else if (run.never_ends || cancelled) {
    out.ended = Ended::Cancelled;
  } else if (run.signal != 0) {
    out.ended = Ended::Signalled;
    out.signal = run.signal;
  } else {
    out.ended = Ended::Exited;
    out.exit_code = run.exit_code;
  }
  if (out.ended != Ended::Exited && out.ended != Ended::Signalled) out.signal = SIGKILL;
  return out;
}

/// A program that never ends waits here for somebody else's cancel, as a real one would.
void wait_if_needed(const FakeRun& run, base::Duration wall, const process::CancelToken& cancel) {
  if (!run.never_ends || wall.count() > 0) return;
  pollfd entry{cancel.fd(), POLLIN, 0};
  ::poll(&entry, 1, 60'000);
}

class FakeResident final : public process::Resident {
 public:
  FakeResident(FakeProcessRunner::ResidentProgram program, process::Command command)
      : program_(std::move(program)), command_(std::move(command)) {}

  process::ResidentReply call(base::BytesView request, base::Duration deadline,
                              const process::CancelToken& cancel) override {
    process::ResidentReply out;
    if (!alive_) {
      out.end = end_;
      return out;
    }
    if (cancel.cancelled()) {
      alive_ = false;
      end_.ended = Ended::Cancelled;
      out.end = end_;
      return out;
    }
    const FakeAnswer answer = program_(command_, std::string(request));
    wait_if_needed(answer.run, deadline, cancel);
    end_ = ended(answer.run, command_.bounds, deadline, cancel.cancelled());
    const bool stopped = end_.ended != Ended::Exited && end_.ended != Ended::Signalled;
    if (answer.dies || stopped) {
      alive_ = false;
      out.end = end_;
      return out;
    }
    memory_ = answer.run.memory_bytes;
    printed_ += answer.run.output + answer.run.errors;
    out.answered = true;
    out.reply = answer.reply;
    return out;
  }
  [[nodiscard]] bool alive() const override { return alive_; }
  [[nodiscard]] std::int64_t memory_bytes() const override { return alive_ ? memory_ : 0; }
  [[nodiscard]] std::string take_printed() override { return std::exchange(printed_, {}); }

 private:
  FakeProcessRunner::ResidentProgram program_;
  process::Command command_;
  process::ProcessResult end_;
  bool alive_ = true;
  std::int64_t memory_ = 0;
  std::string printed_;
};

}  // namespace

process::ProcessResult FakeProcessRunner::run(const process::Command& command,
                                              const process::CancelToken& cancel) {
  commands_.push_back(command);
  process::ProcessResult out;
  if (cancel.cancelled()) {
    out.ended = Ended::Cancelled;
    return out;
  }
  const auto found = programs_.find(program_name(command));
  if (found == programs_.end()) {
    out.problem = "cannot start " + program_name(command) + ": there is no such program";
    return out;
  }
  const FakeRun what = found->second(command);
  wait_if_needed(what, command.bounds.wall, cancel);
  return ended(what, command.bounds, command.bounds.wall, cancel.cancelled());
}

base::Result<std::unique_ptr<process::Resident>> FakeProcessRunner::start(
    const process::Command& command) {
  commands_.push_back(command);
  const auto found = residents_.find(program_name(command));
  if (found == residents_.end()) {
    return base::fail(base::ErrorCode::NotFound,
                      "cannot start " + program_name(command) + ": there is no such program");
  }
  return std::make_unique<FakeResident>(found->second, command);
}

}  // namespace layerfarm::test
