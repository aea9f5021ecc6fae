// Bytes <-> structs. A message is a header frame and a msgpack map; decode bounds sizes before
// reading and checks required fields after.
#pragma once

#include <cstdint>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/protocol/messages.h"

namespace layerfarm::protocol {

/// First frame, 24 bytes little endian: magic "LFM1", major u8, flags u8, type u16, epoch u64,
/// sequence u64.
struct Header {
  std::uint8_t major = 1;
  std::uint8_t flags = 0;
  std::uint16_t type = 0;
  std::uint64_t epoch = 0;     ///< the coordinator's; 0 before Welcome
  std::uint64_t sequence = 0;  ///< the sender's count
  friend bool operator==(const Header&, const Header&) = default;
};
inline constexpr std::size_t kHeaderBytes = 24;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{16} << 20;

[[nodiscard]] base::Bytes encode_header(const Header& header);
[[nodiscard]] base::Result<Header> decode_header(base::BytesView bytes);

/// Message type numbers; retired numbers are never used again (docs/protocol.md).
[[nodiscard]] std::uint16_t message_type(const FromWorker& message);
[[nodiscard]] std::uint16_t message_type(const FromCoordinator& message);

[[nodiscard]] base::Bytes encode(const FromWorker& message);
[[nodiscard]] base::Bytes encode(const FromCoordinator& message);
/// Incompatible for a type this side does not know (to be answered), InvalidInput for bytes that
/// are no such message.
[[nodiscard]] base::Result<FromWorker> decode_from_worker(std::uint16_t type, base::BytesView body);
[[nodiscard]] base::Result<FromCoordinator> decode_from_coordinator(std::uint16_t type,
                                                                    base::BytesView body);

// The same form for what is stored: unknown keys are ignored, missing optional ones keep their
// defaults.
[[nodiscard]] base::Bytes encode_outcome(const domain::Outcome& outcome);
[[nodiscard]] base::Result<domain::Outcome> decode_outcome(base::BytesView bytes);
[[nodiscard]] base::Bytes encode_analysis(const domain::ModelAnalysis& analysis);
[[nodiscard]] base::Result<domain::ModelAnalysis> decode_analysis(base::BytesView bytes);
[[nodiscard]] base::Bytes encode_analyze_request(const domain::AnalyzeRequest& request);
[[nodiscard]] base::Result<domain::AnalyzeRequest> decode_analyze_request(base::BytesView bytes);

}  // namespace layerfarm::protocol
