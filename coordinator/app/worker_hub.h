// WorkerHub: registrations of workers over the ROUTER. Turns frames into typed messages and names
// of connections into worker ids; speaks Hello, Welcome, Reject and HelloAgain itself. Loop thread
// only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "coordinator/core/ids.h"
#include "shared/protocol/messages.h"
#include "shared/transport/socket.h"

namespace layerfarm::coordinator::app {

/// A worker said Hello and was welcomed.
struct Joined {
  core::WorkerId worker;
  protocol::Hello hello;
  std::optional<core::WorkerId> replaces;  ///< the same process's earlier registration
};
/// Anything else that a registered worker said.
struct Said {
  core::WorkerId worker;
  protocol::FromWorker message;
};
using HubEvent = std::variant<Joined, Said>;

class WorkerHub {
 public:
  WorkerHub(transport::Socket socket, std::uint64_t epoch)
      : socket_(std::move(socket)), epoch_(epoch) {}

  /// At most `limit` messages; never blocks.
  [[nodiscard]] std::vector<HubEvent> receive(int limit);
  /// False when the worker cannot be reached: it is gone, or does not read. It is then unknown
  /// here.
  [[nodiscard]] bool send(core::WorkerId worker, const protocol::FromCoordinator& message);
  /// Drops the registration; if the worker still speaks it is asked for Hello again.
  void forget(core::WorkerId worker);
  /// The name that the worker gave, for people; empty when unknown.
  [[nodiscard]] std::string name(core::WorkerId worker) const;
  [[nodiscard]] transport::Socket& socket() { return socket_; }
  [[nodiscard]] std::size_t registered() const { return workers_.size(); }

 private:
  struct Registration {
    transport::PeerId peer;
    std::string name;
    std::string identity;  ///< host, pid and name: the process behind it
  };
  [[nodiscard]] std::optional<HubEvent> decode(transport::Received& received);
  [[nodiscard]] std::optional<HubEvent> on_hello(const transport::PeerId& peer,
                                                 protocol::Hello hello);
  transport::Sent send_to(const transport::PeerId& peer, const protocol::FromCoordinator& message);

  transport::Socket socket_;
  std::uint64_t epoch_;
  std::uint64_t sequence_ = 0;
  std::uint32_t last_worker_ = 0;
  std::map<core::WorkerId, Registration> workers_;
  std::unordered_map<transport::PeerId, core::WorkerId> peers_;
  std::map<std::string, core::WorkerId> identities_;
};

}  // namespace layerfarm::coordinator::app
