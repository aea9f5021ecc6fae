#include "shared/base/digest.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "shared/base/files.h"

namespace layerfarm::base {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
// Chooses the fastest implementation for this CPU; without it libsodium still works, several times
// slower.
[[maybe_unused]] const int kSodiumReady = sodium_init();

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

const unsigned char* raw(BytesView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t b : bytes) {
    out.push_back(kDigits[b >> 4]);
    out.push_back(kDigits[b & 15]);
  }
  return out;
}

Result<Digest> Digest::from_hex(std::string_view text) {
  Digest out;
  if (text.size() != out.bytes.size() * 2) {
    return fail(ErrorCode::InvalidInput,
                "a digest has 64 hex digits, not " + std::to_string(text.size()));
  }
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return fail(ErrorCode::InvalidInput, "a digest has lower-case hex digits only");
    out.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return out;
}

Result<Digest> Digest::from_bytes(BytesView raw_bytes) {
  Digest out;
  if (raw_bytes.size() != out.bytes.size()) {
    return fail(ErrorCode::InvalidInput,
                "a digest has 32 bytes, not " + std::to_string(raw_bytes.size()));
  }
  std::memcpy(out.bytes.data(), raw_bytes.data(), out.bytes.size());
  return out;
}

Digest digest_of(BytesView bytes) {
  Digest out;
  crypto_generichash(out.bytes.data(), out.bytes.size(), raw(bytes), bytes.size(), nullptr, 0);
  return out;
}

Result<Digest> digest_of_file(const std::string& path) {
  auto opened = open_regular_file(path);
  if (!opened) return fail(opened.error());
  const int fd = *opened;
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, Digest{}.bytes.size());
  std::vector<unsigned char> buffer(kChunk);
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int saved = errno;
      ::close(fd);
      return fail(os_error(path, saved));
    }
    if (n == 0) break;
    crypto_generichash_update(&state, buffer.data(), static_cast<unsigned long long>(n));
  }
  ::close(fd);
  Digest out;
  crypto_generichash_final(&state, out.bytes.data(), out.bytes.size());
  return out;
}

// libsodium's state is 384 bytes aligned to 64; kept out of the header so that sodium.h stays out
// too.
struct Hasher::State {
  crypto_generichash_state sodium;
};

Hasher::Hasher(std::string_view domain) { add(domain); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::take(const void* data, std::size_t size) {
  if (size <= gathered_.size() - used_) {
    if (size > 0) std::memcpy(gathered_.data() + used_, data, size);
    used_ += size;
    return;
  }
  if (!state_) {
    state_ = std::make_unique<State>();
    crypto_generichash_init(&state_->sodium, nullptr, 0, Digest{}.bytes.size());
  }
  crypto_generichash_update(&state_->sodium, gathered_.data(), used_);
  used_ = 0;
  crypto_generichash_update(&state_->sodium, static_cast<const unsigned char*>(data), size);
}

Hasher& Hasher::add(std::string_view text) {
  std::array<unsigned char, 9> head{};
  head[0] = 's';
  const std::uint64_t size = text.size();
  std::memcpy(head.data() + 1, &size, sizeof size);
  take(head.data(), head.size());
  take(text.data(), text.size());
  return *this;
}

Hasher& Hasher::add(std::int64_t number) {
  std::array<unsigned char, 9> field{};
  field[0] = 'i';
  std::memcpy(field.data() + 1, &number, sizeof number);
  take(field.data(), field.size());
  return *this;
}

Hasher& Hasher::add(double number) {
  std::array<unsigned char, 9> field{};
  field[0] = 'd';
  std::memcpy(field.data() + 1, &number, sizeof number);
  take(field.data(), field.size());
  return *this;
}

Digest Hasher::finish() {
  if (!state_) return digest_of({reinterpret_cast<const char*>(gathered_.data()), used_});
  Digest out;
  crypto_generichash_update(&state_->sodium, gathered_.data(), used_);
  crypto_generichash_final(&state_->sodium, out.bytes.data(), out.bytes.size());
  return out;
}

}  // namespace layerfarm::base
