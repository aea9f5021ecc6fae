// BLAKE2b-256 (libsodium), the one digest of the project: blobs, signatures, job keys.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace layerfarm::base {

struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  friend auto operator<=>(const Digest&, const Digest&) = default;
  [[nodiscard]] std::string hex() const;
  [[nodiscard]] BytesView view() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] bool is_zero() const { return *this == Digest{}; }
  /// 64 lower-case hex digits; anything else is InvalidInput.
  static Result<Digest> from_hex(std::string_view text);
  /// Exactly 32 raw bytes; anything else is InvalidInput.
  static Result<Digest> from_bytes(BytesView raw);
};

/// Digest of the bytes alone: names a blob.
[[nodiscard]] Digest digest_of(BytesView bytes);
/// Digest of a file's content, read in chunks.
[[nodiscard]] Result<Digest> digest_of_file(const std::string& path);

/// Builds a digest over fields. Each field carries a type tag and its length, so that ("ab","c")
/// and ("a","bc") differ.
class Hasher {
 public:
  /// `domain` names what is hashed (for example "layerfarm.signature.1"): equal fields of another
  /// kind give another digest.
  explicit Hasher(std::string_view domain);
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& add(std::string_view text);
  Hasher& add(const char* text) { return add(std::string_view(text)); }
  Hasher& add(const Digest& digest) { return add(digest.view()); }
  Hasher& add(std::int64_t number);
  Hasher& add(std::uint64_t number) { return add(static_cast<std::int64_t>(number)); }
  Hasher& add(int number) { return add(static_cast<std::int64_t>(number)); }
  Hasher& add(bool flag) { return add(static_cast<std::int64_t>(flag ? 1 : 0)); }
  /// By bit pattern: 0.0 and -0.0 differ, NaNs are kept apart.
  Hasher& add(double number);
  /// The digest of all that was added. The hasher is used up.
  [[nodiscard]] Digest finish();

 private:
  void take(const void* data, std::size_t size);
  struct State;
  // A key is a few hundred bytes: gathered here they are hashed in one go, and only longer input
  // needs a state (planning computes several keys for each case).
  std::array<unsigned char, 512> gathered_;
  std::size_t used_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace layerfarm::base

template <>
struct std::hash<layerfarm::base::Digest> {
  std::size_t operator()(const layerfarm::base::Digest& d) const noexcept {
    std::size_t out = 0;  // already uniform: any eight bytes will do
    std::memcpy(&out, d.bytes.data(), sizeof out);
    return out;
  }
};
