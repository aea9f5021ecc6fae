#include "coordinator/app/worker_hub.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::app {
using core::WorkerId;

namespace {
constexpr std::int64_t kHeartbeatMs = 2000;
}  // namespace

std::vector<HubEvent> WorkerHub::receive(int limit) {
  std::vector<HubEvent> out;
  for (int n = 0; n < limit; ++n) {
    auto received = socket_.receive();
    if (!received) break;
    if (auto event = decode(*received)) out.push_back(std::move(*event));
  }
  return out;
}

std::optional<HubEvent> WorkerHub::decode(transport::Received& received) {
  const auto refuse = [&](const std::string& why) {
    spdlog::warn("a peer was refused: {}", why);
    send_to(received.peer, protocol::Reject{why});
    return std::nullopt;
  };
  auto header = protocol::decode_header(received.header);
  if (!header) return refuse(header.error().text());
  auto message = protocol::decode_from_worker(header->type, received.body);
  if (!message) return refuse(message.error().text());
  if (auto* hello = std::get_if<protocol::Hello>(&*message))
    return on_hello(received.peer, std::move(*hello));
  const auto known = peers_.find(received.peer);
  if (known == peers_.end()) {
    send_to(received.peer, protocol::HelloAgain{});
    return std::nullopt;
  }
  // What was said to an earlier coordinator means nothing here; Hello lists what still counts.
  if (header->epoch != epoch_) return std::nullopt;
  return Said{known->second, std::move(*message)};
}

std::optional<HubEvent> WorkerHub::on_hello(const transport::PeerId& peer, protocol::Hello hello) {
  if (hello.max_version < protocol::kProtocolMin || hello.min_version > protocol::kProtocolMax) {
    const std::string why =
        "this coordinator speaks protocol " + std::to_string(protocol::kProtocolMin) + " to " +
        std::to_string(protocol::kProtocolMax) + ", the worker " +
        std::to_string(hello.min_version) + " to " + std::to_string(hello.max_version) +
        "; install the same layerfarm on both sides";
    spdlog::warn("worker {} was refused: {}", hello.name, why);
    send_to(peer, protocol::Reject{why});
    return std::nullopt;
  }
  const WorkerId worker(++last_worker_);
  Registration registration{peer, hello.name,
                            hello.host + "/" + std::to_string(hello.pid) + "/" + hello.name};
  std::optional<WorkerId> replaces;
  if (const auto same = identities_.find(registration.identity); same != identities_.end()) {
    replaces = same->second;
    forget(*replaces);
  }
  identities_[registration.identity] = worker;
  peers_[peer] = worker;
  workers_.emplace(worker, std::move(registration));
  protocol::Welcome welcome;
  welcome.version = std::min(hello.max_version, protocol::kProtocolMax);
  welcome.worker = worker.value();
  welcome.epoch = epoch_;
  welcome.heartbeat_ms = kHeartbeatMs;
  send_to(peer, welcome);
  return Joined{worker, std::move(hello), replaces};
}

transport::Sent WorkerHub::send_to(const transport::PeerId& peer,
                                   const protocol::FromCoordinator& message) {
  protocol::Header header;
  header.type = protocol::message_type(message);
  header.epoch = epoch_;
  header.sequence = ++sequence_;
  return socket_.send(peer, protocol::encode_header(header), protocol::encode(message));
}

bool WorkerHub::send(WorkerId worker, const protocol::FromCoordinator& message) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return false;
  if (send_to(it->second.peer, message) == transport::Sent::Yes) return true;
  forget(worker);
  return false;
}

void WorkerHub::forget(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  peers_.erase(it->second.peer);
  if (const auto same = identities_.find(it->second.identity);
      same != identities_.end() && same->second == worker) {
    identities_.erase(same);
  }
  workers_.erase(it);
}

std::string WorkerHub::name(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? std::string() : it->second.name;
}

}  // namespace layerfarm::coordinator::app
