#include "worker/app/worker_loop.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>

#include "shared/base/time.h"
#include "shared/protocol/codec.h"
#include "shared/transport/socket.h"

namespace layerfarm::worker::app {
namespace {

using namespace std::chrono_literals;

constexpr int kMessagesPerTurn = 64;  // a flood of messages must not keep results from leaving
constexpr auto kRetrySend = 50ms;
constexpr auto kLongestWait = 1000ms;

/// The loop's state; one turn = take what arrived, let the core decide, do what it says.
class Loop {
 public:
  Loop(const LoopSettings& settings, process::CancelToken& token, LeaseFunction work,
       transport::Socket socket)
      : core_(settings.self, core::Policy{}),
        parent_(settings.parent),
        socket_(std::move(socket)),
        jobs_(events_, token, std::move(work)) {
    sigset_t wanted;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGTERM);
    ::sigaddset(&wanted, SIGINT);
    signals_ = ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (parent_ != 0) parent_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, parent_, 0));
    if (settings.launcher != 0)
      launcher_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, settings.launcher, 0));
  }
  ~Loop() {
    for (const int descriptor : {signals_, parent_fd_, launcher_fd_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  int run() {
    if (parent_ != 0 && parent_fd_ < 0) return 0;  // the parent was gone before we could watch it
    step(core::Tick{});
    while (!exit_code_) turn();
    return *exit_code_;
  }

 private:
  void turn() {
    const std::array<int, 4> descriptors = {events_.fd(), signals_,
                                            parent_fd_ >= 0 ? parent_fd_ : signals_,
                                            launcher_fd_ >= 0 ? launcher_fd_ : signals_};
    const transport::Ready ready = transport::wait(socket_, descriptors, until_next());
    if (launcher_fd_ >= 0 && ready.descriptors[3]) {
      // Before anything is told: what failed now failed for want of it, and is done by another.
      spdlog::error(
          "the process that starts the tools was ended from outside; this worker ends too");
      exit_code_ = 1;
      return;
    }
    if (ready.socket) receive();
    // Once more after a while: what came soon after the last look does not wake.
    if (ready.descriptors[0] || clock_.now() >= look_again_) take_events();
    if (ready.descriptors[1]) on_signal();
    if (parent_fd_ >= 0 && ready.descriptors[2]) {
      exit_code_ = 0;  // nobody is left to tell; the children go with us
      return;
    }
    if (clock_.now() >= core_.next_deadline()) step(core::Tick{});
    flush();
  }

  [[nodiscard]] std::chrono::milliseconds until_next() const {
    if (!outgoing_.empty()) return kRetrySend;
    const base::Time next = std::min(core_.next_deadline(), look_again_);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next - clock_.now()) + 1ms;
    return std::clamp<std::chrono::milliseconds>(left, 0ms, kLongestWait);
  }

  void receive() {
    for (int n = 0; n < kMessagesPerTurn && !exit_code_; ++n) {
      auto message = socket_.receive();
      if (!message) return;
      auto header = protocol::decode_header(message->header);
      if (!header) {
        spdlog::warn("message dropped: {}", header.error().text());
        continue;
      }
      auto decoded = protocol::decode_from_coordinator(header->type, message->body);
      if (!decoded) {
        spdlog::warn("message dropped: {}", decoded.error().text());
        continue;
      }
      step(core::MessageArrived{std::move(*decoded), header->epoch});
    }
  }

  /// Consecutive answers go out as one message.
  void take_events() {
    std::optional<core::JobsEnded> ended;
    const auto flush_ended = [&] {
      if (ended) step(std::move(*ended));
      ended.reset();
    };
    std::vector<core::Event> events = events_.take();
    look_again_ = events.empty() ? base::Time::max() : clock_.now() + kGatherNews;
    for (core::Event& event : events) {
      if (auto* more = std::get_if<core::JobsEnded>(&event)) {
        if (!ended) {
          ended = std::move(*more);
          continue;
        }
        std::move(more->outcomes.begin(), more->outcomes.end(),
                  std::back_inserter(ended->outcomes));
      } else {
        flush_ended();
        step(std::move(event));
      }
    }
    flush_ended();
  }

  void on_signal() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      step(core::LeaveRequested{true});
  }

  void step(core::Event event) {
    for (core::Action& action : core_.step(std::move(event), clock_.now())) {
      std::visit([this](auto& a) { carry_out(a); }, action);
    }
  }

  void carry_out(core::Send& send) {
    // A Hello starts over: what waits here belongs to a registration that is gone, and the core
    // sends its answers again.
    if (std::holds_alternative<protocol::Hello>(send.message)) outgoing_.clear();
    protocol::Header header;
    header.type = protocol::message_type(send.message);
    header.epoch = core_.epoch();
    header.sequence = ++sequence_;
    outgoing_.emplace_back(protocol::encode_header(header), protocol::encode(send.message));
    flush();
  }
  void carry_out(core::BeginLease& begin) { jobs_.begin(std::move(begin.lease)); }
  void carry_out(core::CancelJobs& cancel) {
    jobs_.cancel(std::move(cancel.attempts), cancel.end_running);
  }
  void carry_out(core::Quit& quit) {
    if (!quit.reason.empty()) spdlog::error("{}", quit.reason);
    exit_code_ = quit.exit_code;
  }

  void flush() {
    while (!outgoing_.empty()) {
      const auto& [header, body] = outgoing_.front();
      if (socket_.send({}, header, body) != transport::Sent::Yes) return;
      outgoing_.pop_front();
    }
  }

  base::MonotonicClock clock_;
  core::WorkerCore core_;
  base::Time look_again_ = base::Time::max();
  int parent_ = 0;
  int parent_fd_ = -1;
  int launcher_fd_ = -1;
  int signals_ = -1;
  std::uint64_t sequence_ = 0;
  std::optional<int> exit_code_;
  std::deque<std::pair<base::Bytes, base::Bytes>>
      outgoing_;  ///< header, body; not accepted by the socket yet
  transport::Socket socket_;
  base::Mailbox<core::Event> events_;
  JobThread jobs_;  // last: its thread ends before what it uses goes
};

}  // namespace

int serve(const LoopSettings& settings, process::CancelToken& token, LeaseFunction work) {
  transport::Context context;
  auto socket = transport::Socket::connect(context, settings.endpoint, transport::LinkSettings{});
  if (!socket) {
    spdlog::error("{}", socket.error().text());
    return 1;
  }
  return Loop(settings, token, std::move(work), std::move(*socket)).run();
}

}  // namespace layerfarm::worker::app
