// Bytes from a peer: whatever they are, decoding ends in a message or an Error, and a message that
// was understood is understood again after it was written.
#include <cstddef>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/protocol/codec.h"

using namespace layerfarm;

namespace {

template <typename Decode>
void check_round_trip(Decode decode, std::uint16_t type, base::BytesView body) {
  const auto message = decode(type, body);
  if (!message) return;
  const base::Bytes written = protocol::encode(*message);
  const auto again = decode(protocol::message_type(*message), base::BytesView(written));
  LAYERFARM_CHECK(again.has_value());
  LAYERFARM_CHECK(protocol::encode(*again) == written);
}

}  // namespace

// The first two bytes choose the message type, so that a corpus file is readable in a hex dump.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::BytesView bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(protocol::decode_header(bytes));
  static_cast<void>(protocol::decode_outcome(bytes));
  static_cast<void>(protocol::decode_analysis(bytes));
  static_cast<void>(protocol::decode_analyze_request(bytes));
  if (size < 2) return 0;
  const auto type = static_cast<std::uint16_t>(data[0] | data[1] << 8);
  check_round_trip(protocol::decode_from_worker, type, bytes.substr(2));
  check_round_trip(protocol::decode_from_coordinator, type, bytes.substr(2));
  return 0;
}
