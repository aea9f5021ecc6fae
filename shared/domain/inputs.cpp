#include "shared/domain/inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "shared/domain/half.h"

namespace layerfarm::domain {
namespace {

using base::ErrorCode;
using base::fail;
__extension__ using U128 = unsigned __int128;

constexpr U128 kMultiplier = (U128{0x2360ed051fc65da4ULL} << 64) | 0x4385df649fccf645ULL;

/// NumPy's SeedSequence for one non-negative integer: 32-bit words mixed into a pool of four, from
/// which state words are drawn.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    const std::array<std::uint32_t, 2> words = {static_cast<std::uint32_t>(seed),
                                                static_cast<std::uint32_t>(seed >> 32)};
    const std::size_t count = words[1] != 0 ? 2 : 1;
    std::uint32_t constant = 0x43b0d7e5U;
    for (std::size_t i = 0; i < pool_.size(); ++i)
      pool_[i] = hash(i < count ? words[i] : 0U, constant);
    for (std::size_t source = 0; source < pool_.size(); ++source) {
      for (std::size_t target = 0; target < pool_.size(); ++target) {
        if (source != target) pool_[target] = mix(pool_[target], hash(pool_[source], constant));
      }
    }
  }

  [[nodiscard]] std::array<std::uint64_t, 4> state() const {
    std::array<std::uint32_t, 8> words{};
    std::uint32_t constant = 0x8b51f9ddU;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38dedU;
      value *= constant;
      words[i] = value ^ (value >> 16);
    }
    std::array<std::uint64_t, 4> out{};
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = words[2 * i] | (std::uint64_t{words[2 * i + 1]} << 32);
    return out;
  }

 private:
  static std::uint32_t hash(std::uint32_t value, std::uint32_t& constant) {
    value ^= constant;
    constant *= 0x931e8875U;
    value *= constant;
    return value ^ (value >> 16);
  }
  static std::uint32_t mix(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t value = 0xca01f9ddU * a - 0x4973f715U * b;
    return value ^ (value >> 16);
  }

  std::array<std::uint32_t, 4> pool_{};
};

/// Pieces of `Piece` bits taken low first from 32-bit words; the buffer starts empty for each
/// tensor.
template <typename Piece>
class Pieces {
 public:
  explicit Pieces(Pcg64& generator) : generator_(generator) {}

  Piece next() {
    constexpr int kBits = std::numeric_limits<Piece>::digits;
    if (left_ == 0) {
      buffer_ = generator_.next32();
      left_ = 32 / kBits - 1;
    } else {
      buffer_ >>= kBits;
      --left_;
    }
    return static_cast<Piece>(buffer_);
  }

  /// Lemire's multiply and shift with rejection; `span` <= 2^bits of the piece.
  Piece bounded(std::uint32_t span) {
    constexpr int kBits = std::numeric_limits<Piece>::digits;
    constexpr std::uint32_t kAll = std::uint32_t{1} << kBits;
    if (span <= 1) return 0;
    if (span >= kAll) return next();
    std::uint32_t product = next() * span;
    if (static_cast<Piece>(product) < span) {
      const auto threshold = static_cast<Piece>((kAll - span) % span);
      while (static_cast<Piece>(product) < threshold) product = next() * span;
    }
    return static_cast<Piece>(product >> kBits);
  }

 private:
  Pcg64& generator_;
  std::uint32_t buffer_ = 0;
  int left_ = 0;
};

template <typename Value, typename Make>
void fill(base::Bytes& out, std::size_t count, const Make& make) {
  for (std::size_t i = 0; i < count; ++i) {
    const Value value = make();
    std::memcpy(out.data() + i * sizeof(Value), &value, sizeof(Value));
  }
}

/// Adds an offset in the unsigned type: exact for every range that fits the type.
template <typename Value>
Value shifted(std::int64_t lo, std::uint64_t drawn) {
  return static_cast<Value>(static_cast<std::uint64_t>(lo) + drawn);
}

template <typename Value>
base::Result<void> fill_integers(Pcg64& generator, const InputSpec& spec, std::size_t count,
                                 base::Bytes& out) {
  // -2^63 and 2^64 are doubles, so a range is checked before it is cast.
  constexpr bool kSigned = std::is_signed_v<Value>;
  constexpr double kLeast =
      kSigned ? -static_cast<double>(std::uint64_t{1} << (std::numeric_limits<Value>::digits))
              : 0.0;
  const double beyond =
      std::ldexp(1.0, std::numeric_limits<Value>::digits);  // one above the greatest
  if (!(spec.lo >= kLeast && spec.hi <= beyond && spec.lo < spec.hi)) {
    return fail(ErrorCode::InvalidInput, "no " + dtype_name(spec.type.dtype) + " lies in [" +
                                             std::to_string(spec.lo) + ", " +
                                             std::to_string(spec.hi) + ")");
  }
  const double whole_lo = std::ceil(spec.lo);
  const double whole_span = std::ceil(spec.hi) - whole_lo;
  if (whole_span < 1)
    return fail(ErrorCode::InvalidInput, "no integer lies between the bounds of an input's range");
  const auto lo = kSigned ? static_cast<std::int64_t>(whole_lo)
                          : static_cast<std::int64_t>(static_cast<std::uint64_t>(whole_lo));
  if constexpr (sizeof(Value) == 8) {
    // A span of 2^64 is written as 0.
    const std::uint64_t span = whole_span >= 0x1p64 ? 0 : static_cast<std::uint64_t>(whole_span);
    fill<Value>(out, count, [&] { return shifted<Value>(lo, generator.bounded64(span)); });
  } else if constexpr (sizeof(Value) == 4) {
    const std::uint32_t span = whole_span >= 0x1p32 ? 0 : static_cast<std::uint32_t>(whole_span);
    fill<Value>(out, count, [&] { return shifted<Value>(lo, generator.bounded32(span)); });
  } else {
    Pieces<std::make_unsigned_t<Value>> pieces(generator);
    const auto span = static_cast<std::uint32_t>(whole_span);
    fill<Value>(out, count, [&] { return shifted<Value>(lo, pieces.bounded(span)); });
  }
  return {};
}

/// The given values instead of drawn ones, converted as a cast would.
base::Result<void> fill_given(const InputSpec& spec, std::size_t count, base::Bytes& out) {
  if (spec.values.size() != count) {
    return fail(ErrorCode::InvalidInput, std::to_string(spec.values.size()) +
                                             " values are given for a tensor of " +
                                             std::to_string(count));
  }
  std::size_t next = 0;
  const auto as = [&]<typename Value>(Value) -> base::Result<void> {
    constexpr double kBeyond = static_cast<double>(std::numeric_limits<Value>::max() / 2 + 1) * 2;
    for (const double value : spec.values) {
      if (!(value >= static_cast<double>(std::numeric_limits<Value>::min()) && value < kBeyond)) {
        return fail(ErrorCode::InvalidInput,
                    "a given value does not fit " + dtype_name(spec.type.dtype));
      }
    }
    fill<Value>(out, count, [&] { return static_cast<Value>(spec.values[next++]); });
    return {};
  };
  switch (spec.type.dtype) {
    case DType::Float64:
      fill<double>(out, count, [&] { return spec.values[next++]; });
      return {};
    case DType::Float32:
      fill<float>(out, count, [&] { return static_cast<float>(spec.values[next++]); });
      return {};
    case DType::Float16:
      fill<std::uint16_t>(out, count, [&] { return double_to_half(spec.values[next++]); });
      return {};
    case DType::BFloat16:
      fill<std::uint16_t>(
          out, count, [&] { return float_to_bfloat16(static_cast<float>(spec.values[next++])); });
      return {};
    case DType::Bool:
      fill<std::uint8_t>(
          out, count, [&] { return static_cast<std::uint8_t>(spec.values[next++] != 0 ? 1 : 0); });
      return {};
    case DType::Int8:
      return as(std::int8_t{});
    case DType::Int16:
      return as(std::int16_t{});
    case DType::Int32:
      return as(std::int32_t{});
    case DType::Int64:
      return as(std::int64_t{});
    case DType::UInt8:
      return as(std::uint8_t{});
    case DType::UInt16:
      return as(std::uint16_t{});
    case DType::UInt32:
      return as(std::uint32_t{});
    case DType::UInt64:
      return as(std::uint64_t{});
    case DType::Undefined:
    case DType::String:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  return fail(ErrorCode::InvalidInput,
              "values of type " + dtype_name(spec.type.dtype) + " cannot be given");
}

base::Result<void> fill_tensor(Pcg64& generator, const InputSpec& spec, std::size_t count,
                               base::Bytes& out) {
  const auto real = [&] { return spec.lo + (spec.hi - spec.lo) * generator.next_double(); };
  switch (spec.type.dtype) {
    case DType::Float64:
      fill<double>(out, count, real);
      return {};
    case DType::Float32:
      fill<float>(out, count, [&] { return static_cast<float>(real()); });
      return {};
    case DType::Float16:
      fill<std::uint16_t>(out, count, [&] { return double_to_half(real()); });
      return {};
    case DType::BFloat16:
      fill<std::uint16_t>(out, count,
                          [&] { return float_to_bfloat16(static_cast<float>(real())); });
      return {};
    case DType::Bool: {
      std::uint32_t buffer = 0;
      int left = 0;
      fill<std::uint8_t>(out, count, [&] {
        if (left == 0) {
          buffer = generator.next32();
          left = 31;
        } else {
          buffer >>= 1;
          --left;
        }
        return static_cast<std::uint8_t>(buffer & 1U);
      });
      return {};
    }
    case DType::Int8:
      return fill_integers<std::int8_t>(generator, spec, count, out);
    case DType::Int16:
      return fill_integers<std::int16_t>(generator, spec, count, out);
    case DType::Int32:
      return fill_integers<std::int32_t>(generator, spec, count, out);
    case DType::Int64:
      return fill_integers<std::int64_t>(generator, spec, count, out);
    case DType::UInt8:
      return fill_integers<std::uint8_t>(generator, spec, count, out);
    case DType::UInt16:
      return fill_integers<std::uint16_t>(generator, spec, count, out);
    case DType::UInt32:
      return fill_integers<std::uint32_t>(generator, spec, count, out);
    case DType::UInt64:
      return fill_integers<std::uint64_t>(generator, spec, count, out);
    case DType::Undefined:
    case DType::String:
    case DType::Complex64:
    case DType::Complex128:
      break;
  }
  return fail(ErrorCode::InvalidInput,
              "there is no rule for random inputs of type " + dtype_name(spec.type.dtype));
}

/// Larger tensors are refused rather than allocated: no tool here takes a single input beyond it.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 34;

}  // namespace

Pcg64::Pcg64(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = SeedSequence(seed).state();
  const U128 start = (U128{words[0]} << 64) | words[1];
  const U128 sequence = (U128{words[2]} << 64) | words[3];
  increment_ = (sequence << 1) | 1U;
  state_ = increment_ + start;
  state_ = state_ * kMultiplier + increment_;
}

std::uint64_t Pcg64::next64() {
  state_ = state_ * kMultiplier + increment_;
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(static_cast<unsigned>(state_ >> 122)));
}

std::uint32_t Pcg64::next32() {
  if (has_high_half_) {
    has_high_half_ = false;
    return high_half_;
  }
  const std::uint64_t word = next64();
  has_high_half_ = true;
  high_half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

double Pcg64::next_double() { return static_cast<double>(next64() >> 11) * 0x1p-53; }

std::uint64_t Pcg64::bounded64(std::uint64_t span) {
  if (span == 1) return 0;
  if (span == 0) return next64();
  // NumPy draws 32-bit words wherever the span allows it.
  if (span <= (std::uint64_t{1} << 32)) return bounded32(static_cast<std::uint32_t>(span));
  U128 product = U128{next64()} * span;
  if (static_cast<std::uint64_t>(product) < span) {
    const std::uint64_t threshold = (0 - span) % span;
    while (static_cast<std::uint64_t>(product) < threshold) product = U128{next64()} * span;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::uint32_t Pcg64::bounded32(std::uint32_t span) {
  if (span == 1) return 0;
  if (span == 0) return next32();
  std::uint64_t product = std::uint64_t{next32()} * span;
  if (static_cast<std::uint32_t>(product) < span) {
    const std::uint32_t threshold = (0U - span) % span;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = std::uint64_t{next32()} * span;
  }
  return static_cast<std::uint32_t>(product >> 32);
}

base::Result<std::vector<Tensor>> draw_inputs(const std::vector<InputSpec>& inputs,
                                              const std::vector<std::uint32_t>& draw_order,
                                              std::uint64_t seed) {
  std::vector<bool> drawn(inputs.size(), false);
  for (const std::uint32_t index : draw_order) {
    if (index >= inputs.size() || drawn[index]) {
      return fail(ErrorCode::InvalidInput,
                  "the order in which inputs are drawn does not name each input once");
    }
    drawn[index] = true;
  }
  if (draw_order.size() != inputs.size()) {
    return fail(ErrorCode::InvalidInput, "the order in which inputs are drawn leaves some out");
  }
  std::vector<Tensor> out(inputs.size());
  Pcg64 generator(seed);
  for (const std::uint32_t index : draw_order) {
    const InputSpec& spec = inputs[index];
    const auto context = [&](base::Error error) {
      return fail(std::move(error).with("input " + std::to_string(index)));
    };
    for (const std::int64_t dim : spec.type.dims) {
      if (dim < 0) return context({ErrorCode::InvalidInput, "a dimension is not known"});
    }
    const std::uint64_t bytes = spec.type.bytes();
    if (bytes > kMostBytes) {
      return context({ErrorCode::InvalidInput, "a tensor " + spec.type.mlir() + " is larger than " +
                                                   std::to_string(kMostBytes >> 30) + " GiB"});
    }
    out[index].type = spec.type;
    out[index].data.resize(bytes);
    // Nothing is drawn for a tensor without elements, whatever its range is.
    const auto count = static_cast<std::size_t>(spec.type.elements());
    if (count == 0 && dtype_size(spec.type.dtype) != 0) continue;
    auto filled = spec.values.empty() ? fill_tensor(generator, spec, count, out[index].data)
                                      : fill_given(spec, count, out[index].data);
    if (!filled) return context(std::move(filled).error());
  }
  return out;
}

}  // namespace layerfarm::domain
