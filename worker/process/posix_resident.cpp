#include "worker/process/posix_resident.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "worker/process/minded_child.h"

namespace layerfarm::worker::process {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kLengthBytes = 4;
/// Between a closed channel and the report of the end that most likely follows.
constexpr auto kEndFollowsHangUp = 2s;

base::Bytes frame(base::BytesView content) {
  base::Bytes out;
  out.reserve(kLengthBytes + content.size());
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    out.push_back(static_cast<char>(content.size() >> (8 * i) & 0xff));
  out.append(content);
  return out;
}

std::size_t length_of(const base::Bytes& received) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    out |= std::size_t{static_cast<unsigned char>(received[i])} << (8 * i);
  return out;
}

class PosixResident final : public Resident {
 public:
  PosixResident(MindedChild child, Descriptor channel)
      : child_(std::move(child)), channel_(std::move(channel)) {}

  ResidentReply call(base::BytesView request, base::Duration deadline,
                     const CancelToken& cancel) override;
  bool alive() const override { return !child_.check_ended(); }
  std::int64_t memory_bytes() const override { return child_.memory_bytes(); }
  std::string take_printed() override;

 private:
  enum class Channel { Open, HungUp, Nonsense };
  Channel send_more(base::BytesView& left);
  /// Reads what is there; `received` holds the length and the reply.
  Channel receive_more(base::Bytes& received);
  ResidentReply gone();
  ResidentReply end_for(Ended why, const std::string& problem);

  // Asking is how an end that was reported meanwhile is learned of, so const queries look too.
  mutable MindedChild child_;
  Descriptor channel_;
};

PosixResident::Channel PosixResident::send_more(base::BytesView& left) {
  while (!left.empty()) {
    const ssize_t n = ::send(channel_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? Channel::Open : Channel::HungUp;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  return Channel::Open;
}

PosixResident::Channel PosixResident::receive_more(base::Bytes& received) {
  static thread_local std::array<char, std::size_t{64} << 10> buffer;
  while (true) {
    const ssize_t n = ::recv(channel_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN ? Channel::Open : Channel::HungUp;
    if (n == 0) return Channel::HungUp;
    received.append(buffer.data(), static_cast<std::size_t>(n));
    if (received.size() < kLengthBytes) continue;
    const std::size_t length = length_of(received);
    if (length > kLargestFrame || received.size() > kLengthBytes + length) return Channel::Nonsense;
    if (received.size() == kLengthBytes + length) return Channel::Open;
  }
}

ResidentReply PosixResident::gone() {
  ResidentReply out;
  out.end = child_.result();
  return out;
}

ResidentReply PosixResident::end_for(Ended why, const std::string& problem) {
  child_.end_and_wait(why);
  ResidentReply out = gone();
  if (out.end.problem.empty()) out.end.problem = problem;
  return out;
}

ResidentReply PosixResident::call(base::BytesView request, base::Duration deadline,
                                  const CancelToken& cancel) {
  if (child_.check_ended()) return gone();
  if (cancel.cancelled()) return end_for(Ended::Cancelled, "");
  if (request.size() > kLargestFrame)
    return end_for(Ended::OverOutput, "the request is larger than a frame may be");
  const auto until =
      deadline.count() > 0 ? Clock::now() + deadline : Clock::time_point::max() - 24h;
  base::Bytes received;
  // Words that nobody asked for would be taken as the answer to this request.
  if (receive_more(received) == Channel::Nonsense || !received.empty()) {
    return end_for(Ended::Signalled, "it spoke on its channel without being asked");
  }
  const base::Bytes outgoing = frame(request);
  base::BytesView left = outgoing;
  Channel state = send_more(left);
  while (state == Channel::Open) {
    const short events = static_cast<short>(left.empty() ? POLLIN : POLLIN | POLLOUT);
    const auto woken = child_.wait(until, &cancel, channel_.get(), events);
    // An answer that is there counts, even when its giver ended right after.
    if (woken.extra || woken.ended) {
      if (!left.empty()) state = send_more(left);
      const Channel heard = receive_more(received);
      if (heard != Channel::Nonsense && received.size() >= kLengthBytes &&
          received.size() == kLengthBytes + length_of(received)) {
        received.erase(0, kLengthBytes);
        return {.answered = true, .reply = std::move(received), .end = {}};
      }
      if (heard != Channel::Open) state = heard;
    }
    if (woken.ended) return gone();
    if (woken.cancelled) return end_for(Ended::Cancelled, "");
    if (state == Channel::Open && Clock::now() >= until) return end_for(Ended::TimedOut, "");
  }
  if (state == Channel::Nonsense)
    return end_for(Ended::Signalled, "it sent something that is no answer");
  // The channel closed: the child is ending, and how is worth waiting for.
  const auto end_by = Clock::now() + kEndFollowsHangUp;
  while (!child_.ended() && Clock::now() < end_by) child_.wait(end_by, nullptr);
  return end_for(Ended::Signalled,
                 child_.ended() ? "" : "it closed its channel without an answer and went on");
}

std::string PosixResident::take_printed() {
  child_.output().drain();
  return child_.output().take_output().text + child_.output().take_errors().text;
}

}  // namespace

base::Result<std::unique_ptr<Resident>> start_posix_resident(Launcher& launcher,
                                                             const Command& command) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::fail(base::os_error("cannot make a socket pair", errno));
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  auto child = MindedChild::start(launcher, command, theirs.get());
  if (!child) return base::fail(std::move(child.error()));
  theirs.close();
  return std::make_unique<PosixResident>(std::move(*child), std::move(ours));
}

}  // namespace layerfarm::worker::process
