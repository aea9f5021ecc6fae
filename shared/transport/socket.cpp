#include "shared/transport/socket.h"

#include <cerrno>
#include <utility>
#include <zmq.hpp>

namespace layerfarm::transport {
using base::BytesView;
using base::ErrorCode;
using base::fail;
using base::Result;

struct Context::Impl {
  zmq::context_t context{1};
};

Context::Context() : impl_(std::make_unique<Impl>()) {}
Context::~Context() = default;

struct Socket::Impl {
  zmq::socket_t socket;
  bool router = false;
  std::uint64_t malformed = 0;
};

Socket::Socket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Socket::~Socket() = default;
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&&) noexcept = default;
std::uint64_t Socket::malformed() const { return impl_->malformed; }

namespace {

// A peer holds at most a few leases, so this many queued messages means that it does not read at
// all.
constexpr int kHighWaterMark = 4000;
constexpr int kHandshakeMs = 5000;
constexpr int kBacklog = 1024;
constexpr int kReconnectMs = 100;
constexpr int kReconnectMaxMs = 2000;

void set_common(zmq::socket_t& socket, const LinkSettings& settings) {
  using namespace zmq::sockopt;
  socket.set(linger, static_cast<int>(settings.linger.count()));
  socket.set(sndhwm, kHighWaterMark);
  socket.set(rcvhwm, kHighWaterMark);
  socket.set(sndtimeo,
             0);  // a blocking send to a peer that then vanishes never returns (libzmq issue 4665)
  socket.set(maxmsgsize, static_cast<std::int64_t>(settings.max_message_bytes));
  socket.set(handshake_ivl, kHandshakeMs);
  socket.set(heartbeat_ivl, static_cast<int>(settings.heartbeat.count()));
  socket.set(heartbeat_timeout, static_cast<int>(settings.heartbeat_timeout.count()));
  socket.set(heartbeat_ttl, static_cast<int>(settings.heartbeat_timeout.count()));
  socket.set(ipv6, 1);
  socket.set(tcp_keepalive, 1);
  socket.set(tcp_keepalive_idle, 60);
  socket.set(tcp_keepalive_intvl, 10);
  socket.set(tcp_keepalive_cnt, 3);
}

base::Bytes take(const zmq::message_t& frame) {
  return {static_cast<const char*>(frame.data()), frame.size()};
}

/// recv that treats "nothing there" and "interrupted" alike.
bool try_receive(zmq::socket_t& socket, zmq::message_t& frame) {
  try {
    return socket.recv(frame, zmq::recv_flags::dontwait).has_value();
  } catch (const zmq::error_t& error) {
    if (error.num() == EINTR) return false;
    throw;
  }
}

}  // namespace

Result<Socket> Socket::bind(Context& context, const std::string& endpoint,
                            const LinkSettings& settings) {
  auto impl = std::make_unique<Impl>();
  impl->router = true;
  try {
    impl->socket = zmq::socket_t(context.impl().context, zmq::socket_type::router);
    set_common(impl->socket, settings);
    // Without this a ROUTER drops what it cannot deliver, silently.
    impl->socket.set(zmq::sockopt::router_mandatory, 1);
    impl->socket.set(zmq::sockopt::backlog, kBacklog);
    impl->socket.bind(endpoint);
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::Unavailable, "cannot listen on " + endpoint + ": " + error.what());
  }
  return Socket(std::move(impl));
}

Result<Socket> Socket::connect(Context& context, const std::string& endpoint,
                               const LinkSettings& settings) {
  auto impl = std::make_unique<Impl>();
  try {
    impl->socket = zmq::socket_t(context.impl().context, zmq::socket_type::dealer);
    set_common(impl->socket, settings);
    // What was not delivered stays with the worker, which sends it again to whoever answers next.
    impl->socket.set(zmq::sockopt::immediate, 1);
    impl->socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
    impl->socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs);
    impl->socket.connect(endpoint);
  } catch (const zmq::error_t& error) {
    return fail(ErrorCode::InvalidInput, "cannot connect to " + endpoint + ": " + error.what());
  }
  return Socket(std::move(impl));
}

std::optional<Received> Socket::receive() {
  zmq::socket_t& socket = impl_->socket;
  const std::size_t want = impl_->router ? 3 : 2;
  while (true) {
    std::vector<zmq::message_t> frames;
    zmq::message_t frame;
    if (!try_receive(socket, frame)) return std::nullopt;
    bool more = frame.more();
    frames.push_back(std::move(frame));
    // All parts of a message are there once the first is; the bound keeps a peer from filling
    // memory with tiny parts.
    while (more) {
      zmq::message_t part;
      if (!try_receive(socket, part)) break;
      more = part.more();
      if (frames.size() <= want) frames.push_back(std::move(part));
    }
    if (frames.size() != want) {
      ++impl_->malformed;
      continue;
    }
    Received out;
    std::size_t i = 0;
    if (impl_->router) out.peer = take(frames[i++]);
    out.header = take(frames[i++]);
    out.body = take(frames[i]);
    return out;
  }
}

Sent Socket::send(const PeerId& peer, BytesView header, BytesView body) {
  zmq::socket_t& socket = impl_->socket;
  const auto part = [&socket](BytesView bytes, bool last) {
    return socket.send(
        zmq::const_buffer(bytes.data(), bytes.size()),
        last ? zmq::send_flags::dontwait : zmq::send_flags::dontwait | zmq::send_flags::sndmore);
  };
  try {
    // Only the first part of a message can be refused; the others follow it.
    if (impl_->router && !part(peer, false)) return Sent::Full;
    if (!part(header, false)) return Sent::Full;
    if (!part(body, true)) return Sent::Full;
    return Sent::Yes;
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH) return Sent::PeerGone;
    if (error.num() == EAGAIN || error.num() == EINTR) return Sent::Full;
    throw;
  }
}

Ready wait(Socket& socket, std::span<const int> descriptors, std::chrono::milliseconds timeout) {
  std::vector<zmq::pollitem_t> items;
  items.push_back({socket.impl().socket.handle(), 0, ZMQ_POLLIN, 0});
  for (const int fd : descriptors) items.push_back({nullptr, fd, ZMQ_POLLIN, 0});
  Ready out;
  out.descriptors.resize(descriptors.size());
  try {
    zmq::poll(items, timeout);
  } catch (const zmq::error_t& error) {
    if (error.num() != EINTR) throw;
    return out;
  }
  out.socket = (items[0].revents & ZMQ_POLLIN) != 0;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    out.descriptors[i] = (items[i + 1].revents & (ZMQ_POLLIN | ZMQ_POLLERR)) != 0;
  }
  return out;
}

Result<std::string> library_version() {
  const auto [major, minor, patch] = zmq::version();
  std::string text =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  if (std::tuple(major, minor, patch) < std::tuple(4, 3, 3)) {
    return fail(ErrorCode::Incompatible,
                "libzmq " + text + " is too old: 4.3.3 or later is needed");
  }
  return text;
}

}  // namespace layerfarm::transport
