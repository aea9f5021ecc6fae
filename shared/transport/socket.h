// How bytes travel: a ROUTER that the coordinator binds, a DEALER that a worker connects, and
// waiting on both together with descriptors. The only folder that includes zmq.hpp. One thread owns
// a socket. Options and their reasons: docs/protocol.md, spec/scheduler.md section 5.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace layerfarm::transport {

/// One per process; closed last.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  struct Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// How the ROUTER names a connection. Made by the ROUTER, new for each connection; never an
/// identity that a peer chose.
using PeerId = base::Bytes;

struct Received {
  PeerId peer;  ///< empty on the client side
  base::Bytes header;
  base::Bytes body;
};

enum class Sent {
  Yes,
  PeerGone,  ///< nobody of that name is connected any more
  Full,      ///< the peer does not read: a stuck peer or a fault in the credits; nothing was sent
};

/// Link settings; the defaults are the protocol's.
struct LinkSettings {
  std::chrono::milliseconds heartbeat{4000};
  std::chrono::milliseconds heartbeat_timeout{12000};
  std::chrono::milliseconds linger{2000};
  std::size_t max_message_bytes = std::size_t{16} << 20;
};

class Socket {
 public:
  ~Socket();
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// ROUTER. Unavailable when the endpoint cannot be bound (in use, no such folder).
  static base::Result<Socket> bind(Context& context, const std::string& endpoint,
                                   const LinkSettings& settings);
  /// DEALER. Connecting goes on in the background for ever; only a malformed endpoint is an error.
  static base::Result<Socket> connect(Context& context, const std::string& endpoint,
                                      const LinkSettings& settings);

  /// Never blocks. Messages of another number of frames are dropped and counted.
  [[nodiscard]] std::optional<Received> receive();
  /// Never blocks. `peer` is empty on the client side.
  [[nodiscard]] Sent send(const PeerId& peer, base::BytesView header, base::BytesView body);
  [[nodiscard]] std::uint64_t malformed() const;

  struct Impl;
  [[nodiscard]] Impl& impl() { return *impl_; }

 private:
  explicit Socket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// What a wait ended with.
struct Ready {
  bool socket = false;
  std::vector<bool> descriptors;  ///< in the order asked
};

/// Waits until the socket or one of the descriptors is readable, or the time is up. Interrupted
/// waits just return.
[[nodiscard]] Ready wait(Socket& socket, std::span<const int> descriptors,
                         std::chrono::milliseconds timeout);

/// libzmq's version, refused below 4.3.3 (remote holes without authentication before that).
[[nodiscard]] base::Result<std::string> library_version();

}  // namespace layerfarm::transport
