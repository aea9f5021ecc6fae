#include "worker/process/minded_child.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "worker/process/minder_messages.h"
#include "worker/process/posix_process_runner.h"

namespace layerfarm::worker::process {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A minder gives up ending a tree earlier than this; so this is for a minder that is itself
/// stopped or starved.
constexpr auto kEndMustCome = 40s;
constexpr base::Duration kStartMustCome = 60s;
constexpr base::Duration kMemoryMustCome = 10s;

/// Whether the child wrote a file up to its limit. Tools that handle or ignore the signal fail with
/// an exit code of their own, so the files have to tell. Blobs that were linked in have several
/// names and do not count.
bool wrote_file_to_limit(const Command& command, std::chrono::system_clock::time_point since) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto since_s = std::chrono::system_clock::to_time_t(since) - 1;
  for (fs::recursive_directory_iterator
           at(command.folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && at != end; at.increment(error)) {
    struct stat info{};
    if (::lstat(at->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_size >= command.bounds.file_bytes && info.st_nlink == 1 &&
        info.st_mtim.tv_sec >= since_s)
      return true;
  }
  return false;
}

}  // namespace

base::Result<MindedChild> MindedChild::start(Launcher& launcher, const Command& command,
                                             int channel) {
  auto program = find_program(command);
  if (!program) return base::fail(std::move(program.error()));
  auto output = ChildOutput::make();
  if (!output) return base::fail(std::move(output.error()));
  auto minder = launcher.take_minder();
  if (!minder) return base::fail(std::move(minder.error()));
  const bool resident = channel >= 0;
  StartChild order{.program = std::move(*program),
                   .argv = command.argv,
                   .environment = command.environment,
                   .folder = command.folder.string(),
                   .cores = command.cores,
                   .bounds = command.bounds,
                   .resident = resident};
  if (resident) order.bounds.wall = base::Duration{0};
  std::vector<int> descriptors = {output->output_end(), output->errors_end()};
  if (resident) descriptors.push_back(channel);
  if (auto sent = send(minder->socket.get(), order, descriptors); !sent)
    return base::fail(std::move(sent.error()));
  output->started();
  MindedChild child(launcher, std::move(*minder), std::move(*output), command);
  if (!resident) return child;
  auto answer = receive(child.minder_.socket.get(), kStartMustCome);
  if (!answer) return base::fail(std::move(answer.error()));
  if (std::holds_alternative<ChildStarted>(answer->message)) return child;
  const auto* const end = std::get_if<ChildEnded>(&answer->message);
  const std::string problem =
      end != nullptr ? end->problem : "the launcher gave an answer to something else";
  if (end != nullptr) child.end_ = *end;
  return base::fail(base::ErrorCode::Unavailable, problem);
}

MindedChild::~MindedChild() {
  if (!minder_.socket.open()) return;  // moved from, or lost
  end_and_wait(Ended::Cancelled);
  if (minder_.socket.open() && !end_->stuck) launcher_->give_back(std::move(minder_));
}

void MindedChild::on_lost(const base::Error& error) {
  ChildEnded end;
  end.problem =
      "the launcher's process that held " + command_.argv[0] + " is gone: " + error.message;
  end_ = end;
  minder_.socket.close();  // also ends whatever it may still have
}

void MindedChild::read_report() {
  auto received = receive(minder_.socket.get(), base::Duration{0});
  if (!received) {
    if (received.error().code != base::ErrorCode::TimedOut) on_lost(received.error());
    return;
  }
  if (const auto* end = std::get_if<ChildEnded>(&received->message)) end_ = *end;
}

bool MindedChild::check_ended() {
  if (!end_) read_report();
  return end_.has_value();
}

void MindedChild::order_end(Ended why) {
  if (end_ || end_ordered_) return;
  end_ordered_ = Clock::now();
  if (auto sent = send(minder_.socket.get(), EndChild{why}); !sent) on_lost(sent.error());
}

MindedChild::Woken MindedChild::wait(Clock::time_point until, const CancelToken* cancel,
                                     int extra_fd, short extra_events) {
  if (end_) return {.ended = true};
  if (end_ordered_) until = std::min(until, *end_ordered_ + kEndMustCome);
  pollfd entries[] = {{minder_.socket.get(), POLLIN, 0},
                      {output_.output_fd(), POLLIN, 0},
                      {output_.errors_fd(), POLLIN, 0},
                      {cancel != nullptr && !end_ordered_ ? cancel->fd() : -1, POLLIN, 0},
                      {extra_fd, extra_events, 0}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  const int ready =
      ::poll(entries, 5, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
  if (ready <= 0) {
    if (end_ordered_ && Clock::now() >= *end_ordered_ + kEndMustCome) {
      on_lost(
          base::Error{base::ErrorCode::TimedOut, "it does not report the end that was ordered"});
    }
    return {.ended = end_.has_value()};
  }
  if (entries[1].revents != 0 || entries[2].revents != 0) output_.drain();
  if (entries[0].revents != 0) read_report();
  if (!over_output_ && command_.bounds.output_bytes > 0 &&
      output_.bytes() > static_cast<std::uint64_t>(command_.bounds.output_bytes)) {
    over_output_ = true;
    order_end(Ended::OverOutput);
  }
  return {.ended = end_.has_value(),
          .cancelled = entries[3].revents != 0,
          .extra = entries[4].revents != 0};
}

void MindedChild::end_and_wait(Ended why) {
  if (check_ended()) return;
  order_end(why);
  while (!end_) wait(Clock::now() + kEndMustCome, nullptr);
}

ProcessResult MindedChild::result() {
  output_.drain();
  const ChildEnded& end = *end_;
  ProcessResult out{.ended = end.ended,
                    .exit_code = end.exit_code,
                    .signal = end.signal,
                    .output = output_.take_output(),
                    .errors = output_.take_errors(),
                    .wall_us = end.wall_us,
                    .cpu_us = end.cpu_us,
                    .peak_memory_bytes = end.peak_memory_bytes,
                    .problem = end.problem};
  // Said by the amount and not by who was faster, so that equal children get equal answers.
  const bool own_end = out.ended == Ended::Exited || out.ended == Ended::Signalled;
  const bool over = command_.bounds.output_bytes > 0 &&
                    out.output.bytes + out.errors.bytes >
                        static_cast<std::uint64_t>(command_.bounds.output_bytes);
  if (own_end && over) out.ended = Ended::OverOutput;
  if (out.ended == Ended::Exited && out.exit_code != 0 && command_.bounds.file_bytes > 0 &&
      wrote_file_to_limit(command_, started_at_)) {
    out.ended = Ended::OverFile;
  }
  return out;
}

std::int64_t MindedChild::memory_bytes() {
  if (end_) return 0;
  if (auto sent = send(minder_.socket.get(), AskMemory{}); !sent) {
    on_lost(sent.error());
    return 0;
  }
  auto received = receive(minder_.socket.get(), kMemoryMustCome);
  if (!received) {
    on_lost(received.error());
    return 0;
  }
  if (const auto* memory = std::get_if<Memory>(&received->message)) return memory->bytes;
  // It ended just now; the answer to the question follows that report.
  if (const auto* end = std::get_if<ChildEnded>(&received->message)) end_ = *end;
  if (auto answer = receive(minder_.socket.get(), kMemoryMustCome); !answer) minder_.socket.close();
  return 0;
}

}  // namespace layerfarm::worker::process
