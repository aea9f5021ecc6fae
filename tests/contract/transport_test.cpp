#include "shared/transport/socket.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "coordinator/app/worker_hub.h"
#include "shared/base/files.h"
#include "shared/base/mailbox.h"
#include "shared/protocol/codec.h"

using namespace layerfarm;
using namespace layerfarm::transport;
using namespace std::chrono_literals;

namespace {

struct Link {
  base::ScratchFolder folder =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  Context context;
  std::string endpoint = "ipc://" + (folder.path() / "s").string();
  LinkSettings settings{.linger = 0ms};
  Socket server = *Socket::bind(context, endpoint, settings);
  Socket client() { return *Socket::connect(context, endpoint, settings); }
};

std::optional<Received> receive(Socket& socket) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto message = socket.receive()) return message;
    [[maybe_unused]] const Ready ready = wait(socket, {}, 100ms);
  }
  return std::nullopt;
}

/// An IMMEDIATE socket takes nothing before its connection is up.
void send_when_up(Socket& socket, base::BytesView header, base::BytesView body) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (socket.send({}, header, body) != Sent::Yes) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(5ms);
  }
}

void send_when_up(Socket& socket, const protocol::FromWorker& message, std::uint64_t epoch) {
  protocol::Header header;
  header.type = protocol::message_type(message);
  header.epoch = epoch;
  send_when_up(socket, protocol::encode_header(header), protocol::encode(message));
}

std::optional<protocol::FromCoordinator> hear(Socket& socket) {
  const auto received = receive(socket);
  if (!received) return std::nullopt;
  const auto message = protocol::decode_from_coordinator(
      protocol::decode_header(received->header)->type, received->body);
  REQUIRE(message.has_value());
  return *message;
}

std::vector<coordinator::app::HubEvent> events(coordinator::app::WorkerHub& hub) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (std::chrono::steady_clock::now() < deadline) {
    [[maybe_unused]] const Ready ready = wait(hub.socket(), {}, 50ms);
    if (auto out = hub.receive(10); !out.empty()) return out;
  }
  return {};
}

}  // namespace

TEST_CASE("a message goes there and the answer comes back") {
  Link link;
  Socket client = link.client();
  send_when_up(client, "header", "body");
  const auto got = receive(link.server);
  REQUIRE(got.has_value());
  CHECK(got->header == "header");
  CHECK(got->body == "body");
  CHECK(link.server.send(got->peer, "h2", "") == Sent::Yes);
  const auto back = receive(client);
  REQUIRE(back.has_value());
  CHECK(back->header == "h2");
  CHECK(back->body.empty());
}

TEST_CASE("sending to a peer that has gone says so") {
  Link link;
  PeerId peer;
  {
    Socket client = link.client();
    send_when_up(client, "h", "b");
    peer = receive(link.server)->peer;
  }
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  Sent sent = Sent::Yes;
  while (sent == Sent::Yes && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
    sent = link.server.send(peer, "h", "b");
  }
  CHECK(sent == Sent::PeerGone);
  CHECK(link.server.send("nobody", "h", "b") == Sent::PeerGone);
}

TEST_CASE("a peer that does not read is noticed before anything is lost") {
  Link link;
  Socket client = link.client();
  send_when_up(client, "h", "b");
  const PeerId peer = receive(link.server)->peer;
  std::size_t accepted = 0;
  while (accepted < 1'000'000 && link.server.send(peer, "h", std::string(1000, 'x')) == Sent::Yes)
    ++accepted;
  REQUIRE(accepted < 1'000'000);
  std::size_t arrived = 0;
  while (arrived < accepted) {
    if (!receive(client)) break;
    ++arrived;
  }
  CHECK(arrived == accepted);
}

TEST_CASE("a wait ends for a descriptor as well as for a message") {
  Link link;
  base::Mailbox<int> mailbox;
  const std::vector<int> descriptors = {mailbox.fd()};
  CHECK(!wait(link.server, descriptors, 0ms).descriptors[0]);
  mailbox.put(3);
  const Ready ready = wait(link.server, descriptors, 1000ms);
  CHECK(ready.descriptors[0]);
  CHECK(!ready.socket);
  CHECK(mailbox.take() == std::vector<int>{3});
}

TEST_CASE("an endpoint that cannot be bound is named") {
  Context context;
  const auto socket = Socket::bind(context, "ipc:///no/such/folder/s", {});
  REQUIRE(!socket.has_value());
  CHECK(socket.error().text().find("/no/such/folder/s") != std::string::npos);
  CHECK(library_version().has_value());
}

TEST_CASE("a worker is welcomed, known by its id, and asked again when it is forgotten") {
  Link link;
  coordinator::app::WorkerHub hub(std::move(link.server), 42);
  Socket client = link.client();
  send_when_up(client, protocol::Heartbeat{}, 0);
  CHECK(hub.receive(1).empty());
  [[maybe_unused]] const auto none = events(hub);
  REQUIRE(std::holds_alternative<protocol::HelloAgain>(*hear(client)));

  protocol::Hello hello;
  hello.name = "w0";
  hello.host = "here";
  hello.pid = 5;
  send_when_up(client, hello, 0);
  const auto joined = events(hub);
  REQUIRE(joined.size() == 1);
  const auto& first = std::get<coordinator::app::Joined>(joined[0]);
  CHECK(first.hello.name == "w0");
  CHECK(!first.replaces.has_value());
  const auto welcome = hear(client);
  REQUIRE(std::holds_alternative<protocol::Welcome>(*welcome));
  CHECK(std::get<protocol::Welcome>(*welcome).epoch == 42);
  CHECK(hub.name(first.worker) == "w0");

  send_when_up(client, protocol::Heartbeat{}, 41);  // of another epoch: dropped
  send_when_up(client, protocol::Goodbye{"x"}, 42);
  const auto said = events(hub);
  REQUIRE(said.size() == 1);
  CHECK(std::get<coordinator::app::Said>(said[0]).worker == first.worker);

  // The same process over a new connection takes its own place over.
  Socket second = link.client();
  send_when_up(second, hello, 0);
  const auto again = events(hub);
  REQUIRE(again.size() == 1);
  CHECK(std::get<coordinator::app::Joined>(again[0]).replaces == first.worker);
  CHECK(hub.registered() == 1);
  CHECK(!hub.send(first.worker, protocol::Stop{}));
}

TEST_CASE(
    "a worker of another protocol and a peer that talks nonsense are told why they are refused") {
  Link link;
  coordinator::app::WorkerHub hub(std::move(link.server), 42);
  Socket client = link.client();
  protocol::Hello hello;
  hello.min_version = protocol::kProtocolMax + 1;
  hello.max_version = protocol::kProtocolMax + 1;
  send_when_up(client, hello, 0);
  [[maybe_unused]] const auto none = [&] {
    [[maybe_unused]] const Ready ready = wait(hub.socket(), {}, 1000ms);
    return hub.receive(10);
  }();
  const auto rejected = hear(client);
  REQUIRE(std::holds_alternative<protocol::Reject>(*rejected));
  CHECK(std::get<protocol::Reject>(*rejected).reason.find("protocol") != std::string::npos);
  send_when_up(client, "nonsense", "more");
  [[maybe_unused]] const Ready ready = wait(hub.socket(), {}, 1000ms);
  CHECK(hub.receive(10).empty());
  CHECK(std::holds_alternative<protocol::Reject>(*hear(client)));
}
