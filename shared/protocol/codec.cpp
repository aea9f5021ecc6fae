#include "shared/protocol/codec.h"

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <variant>

#include "shared/protocol/fields.h"
#include "shared/protocol/wire.h"

namespace layerfarm::protocol {
namespace {

using base::Bytes;
using base::BytesView;
using base::ErrorCode;
using base::fail;
using base::Result;

constexpr std::array<char, 4> kMagic = {'L', 'F', 'M', '1'};

// Numbers of message types. Never renumbered, never used again for something else.
template <typename T>
constexpr std::uint16_t kType = 0;
template <>
constexpr std::uint16_t kType<Hello> = 1;
template <>
constexpr std::uint16_t kType<Heartbeat> = 2;
template <>
constexpr std::uint16_t kType<Started> = 3;
template <>
constexpr std::uint16_t kType<Outcomes> = 4;
template <>
constexpr std::uint16_t kType<Goodbye> = 5;
template <>
constexpr std::uint16_t kType<Welcome> = 101;
template <>
constexpr std::uint16_t kType<Reject> = 102;
template <>
constexpr std::uint16_t kType<HelloAgain> = 103;
template <>
constexpr std::uint16_t kType<Lease> = 104;
template <>
constexpr std::uint16_t kType<OutcomesKept> = 105;
template <>
constexpr std::uint16_t kType<Cancel> = 106;
template <>
constexpr std::uint16_t kType<Stop> = 107;

template <typename T>
Bytes encode_value(const T& value) {
  Bytes out;
  wire::StringBuffer buffer{out};
  wire::Packer packer(buffer);
  wire::pack(packer, value);
  return out;
}

// Enumerations arrive as numbers; only those we know may go on.
bool known(domain::Stage stage) { return domain::stage_name(stage) != "unknown"; }
bool known(domain::Ending ending) { return domain::ending_name(ending) != "unknown"; }

void check(const domain::Outcome& outcome) {
  if (!known(outcome.stage)) throw wire::BadWire{"stage: an unknown number"};
  if (!known(outcome.ending)) throw wire::BadWire{"ending: an unknown number"};
  if (outcome.ending != domain::Ending::Done) return;
  // Done promises the stage's result; without it a later reader would find nothing.
  const bool complete = [&] {
    switch (outcome.stage) {
      case domain::Stage::Analyze:
        return outcome.analysis.has_value();
      case domain::Stage::Prepare:
        return outcome.prepared.has_value();
      case domain::Stage::Compile:
        return outcome.artifact.has_value();
      case domain::Stage::Execute:
      case domain::Stage::Recompare:
        return outcome.executed.has_value();
      case domain::Stage::Time:
        return outcome.timed.has_value();
      case domain::Stage::Whole:
        return outcome.whole.has_value();
    }
    return false;
  }();
  if (!complete) {
    throw wire::BadWire{"a finished " + std::string(domain::stage_name(outcome.stage)) +
                        " job has no result"};
  }
}
void check(const domain::ChipSpec& chip) {
  for (const domain::ExecutorSpec& executor : chip.executors) {
    if (executor.evidence > domain::Evidence::StandIn)
      throw wire::BadWire{"evidence: an unknown number"};
  }
}
void check(const domain::AnalyzeRequest& request) {
  if (domain::layer_unit_name(request.unit) == "unknown")
    throw wire::BadWire{"unit: an unknown number"};
  if (request.quantize && domain::quant_format_name(request.quantize->format) == "unknown")
    throw wire::BadWire{"quantize: an unknown format"};
}
void check(const Outcomes& message) {
  for (const AttemptOutcome& item : message.outcomes) check(item.outcome);
}
void check(const Lease& lease) {
  check(lease.chip);
  for (const domain::AnalyzeRequest& request : lease.analyze) check(request);
  const auto within = [](std::int32_t index, std::size_t size) {
    return index >= -1 && (index == -1 || static_cast<std::size_t>(index) < size);
  };
  for (std::size_t i = 0; i < lease.jobs.size(); ++i) {
    const LeasedJob& job = lease.jobs[i];
    if (!known(job.stage)) throw wire::BadWire{"jobs: an unknown stage"};
    // A job may only build on an earlier one, so a lease can be worked through in order.
    if (!within(job.prepare_job, i) || !within(job.compile_job, i) ||
        !within(job.prepared, lease.prepared.size()) ||
        !within(job.artifact, lease.artifacts.size())) {
      throw wire::BadWire{"jobs: an index outside its list"};
    }
    if (job.stage == domain::Stage::Analyze) {
      if (job.layer >= lease.analyze.size())
        throw wire::BadWire{"jobs: a request outside the list"};
      continue;
    }
    if (job.stage == domain::Stage::Whole) {
      if (job.layer >= lease.whole.size()) throw wire::BadWire{"jobs: a request outside the list"};
      continue;
    }
    if (job.layer >= lease.layers.size()) throw wire::BadWire{"jobs: a layer outside the list"};
    if (job.stage != domain::Stage::Prepare && job.executor >= lease.chip.executors.size()) {
      throw wire::BadWire{"jobs: an executor that the chip lacks"};
    }
  }
}
template <typename T>
void check(const T&) {}

template <typename T>
Result<T> decode_value(BytesView bytes) {
  if (bytes.size() > kMaxBodyBytes && !std::is_same_v<T, domain::ModelAnalysis>) {
    return fail(ErrorCode::InvalidInput,
                "a message of " + std::to_string(bytes.size()) + " bytes is too large");
  }
  try {
    // Containers cannot have more members than the message has bytes; nesting of our own structs is
    // below ten.
    const std::size_t most = bytes.size();
    const msgpack::unpack_limit limit(most, most, most, most, 0, 32);
    std::size_t used = 0;
    const msgpack::object_handle handle = msgpack::unpack(
        bytes.data(), bytes.size(), used,
        [](msgpack::type::object_type, std::size_t, void*) { return true; }, nullptr, limit);
    if (used != bytes.size())
      return fail(ErrorCode::InvalidInput, "bytes are left over after the message");
    T value{};
    wire::unpack(handle.get(), value);
    check(value);
    return value;
  } catch (const wire::BadWire& bad) {
    return fail(ErrorCode::InvalidInput, bad.what);
  } catch (const std::exception& error) {
    return fail(ErrorCode::InvalidInput, std::string("not a msgpack map of ours: ") + error.what());
  }
}

template <typename Variant, std::size_t I = 0>
Result<Variant> decode_variant(std::uint16_t type, BytesView body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    return fail(ErrorCode::Incompatible, "unknown message type " + std::to_string(type));
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    if (type != kType<T>) return decode_variant<Variant, I + 1>(type, body);
    auto value = decode_value<T>(body);
    if (!value) return fail(std::move(value.error()).with("message type " + std::to_string(type)));
    return Variant(std::move(*value));
  }
}

template <typename Variant>
std::uint16_t type_of(const Variant& message) {
  return std::visit([]<typename T>(const T&) { return kType<T>; }, message);
}

template <typename Variant>
Bytes encode_variant(const Variant& message) {
  return std::visit([](const auto& value) { return encode_value(value); }, message);
}

template <typename T>
void put_number(char* at, T number) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(at, &number, sizeof number);
}
template <typename T>
T get_number(const char* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

Bytes encode_header(const Header& header) {
  Bytes out(kHeaderBytes, '\0');
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  put_number(out.data() + 4, header.major);
  put_number(out.data() + 5, header.flags);
  put_number(out.data() + 6, header.type);
  put_number(out.data() + 8, header.epoch);
  put_number(out.data() + 16, header.sequence);
  return out;
}

Result<Header> decode_header(BytesView bytes) {
  if (bytes.size() != kHeaderBytes) {
    return fail(ErrorCode::InvalidInput,
                "a header has 24 bytes, not " + std::to_string(bytes.size()));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return fail(ErrorCode::InvalidInput, "not a layerfarm message (another magic)");
  }
  Header out;
  out.major = get_number<std::uint8_t>(bytes.data() + 4);
  out.flags = get_number<std::uint8_t>(bytes.data() + 5);
  out.type = get_number<std::uint16_t>(bytes.data() + 6);
  out.epoch = get_number<std::uint64_t>(bytes.data() + 8);
  out.sequence = get_number<std::uint64_t>(bytes.data() + 16);
  if (out.major != Header{}.major) {
    return fail(ErrorCode::Incompatible,
                "protocol major " + std::to_string(out.major) + " is not spoken here");
  }
  return out;
}

std::uint16_t message_type(const FromWorker& message) { return type_of(message); }
std::uint16_t message_type(const FromCoordinator& message) { return type_of(message); }

Bytes encode(const FromWorker& message) { return encode_variant(message); }
Bytes encode(const FromCoordinator& message) { return encode_variant(message); }

Result<FromWorker> decode_from_worker(std::uint16_t type, BytesView body) {
  return decode_variant<FromWorker>(type, body);
}
Result<FromCoordinator> decode_from_coordinator(std::uint16_t type, BytesView body) {
  return decode_variant<FromCoordinator>(type, body);
}

Bytes encode_outcome(const domain::Outcome& outcome) { return encode_value(outcome); }
Result<domain::Outcome> decode_outcome(BytesView bytes) {
  return decode_value<domain::Outcome>(bytes);
}
Bytes encode_analysis(const domain::ModelAnalysis& analysis) { return encode_value(analysis); }
Result<domain::ModelAnalysis> decode_analysis(BytesView bytes) {
  return decode_value<domain::ModelAnalysis>(bytes);
}
Bytes encode_analyze_request(const domain::AnalyzeRequest& request) {
  return encode_value(request);
}
Result<domain::AnalyzeRequest> decode_analyze_request(BytesView bytes) {
  return decode_value<domain::AnalyzeRequest>(bytes);
}

}  // namespace layerfarm::protocol
