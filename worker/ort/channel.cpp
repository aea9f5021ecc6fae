#include "worker/ort/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace layerfarm::worker::ort {
namespace {

using base::ErrorCode;
using base::fail;

/// Bytes read before the end of the stream, `count` when all came.
base::Result<std::size_t> read_all(int descriptor, char* out, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(descriptor, out + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(base::os_error("reading a request", errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

base::Result<std::optional<std::string>> read_message(int descriptor) {
  std::array<char, 4> head{};
  const auto got = read_all(descriptor, head.data(), head.size());
  if (!got) return fail(got.error());
  if (*got == 0) return std::optional<std::string>();
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < head.size(); ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(head[i])) << (8 * i);
  if (*got < head.size()) return fail(ErrorCode::Corrupt, "the channel ended inside a request");
  if (length > kMostRequestBytes)
    return fail(ErrorCode::InvalidInput,
                "a request of " + std::to_string(length) + " bytes is too long");
  std::string message(length, '\0');
  const auto body = read_all(descriptor, message.data(), length);
  if (!body) return fail(body.error());
  if (*body < length) return fail(ErrorCode::Corrupt, "the channel ended inside a request");
  return std::optional<std::string>(std::move(message));
}

base::Result<void> write_message(int descriptor, const std::string& message) {
  const auto length = static_cast<std::uint32_t>(message.size());
  std::string framed(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) framed[i] = static_cast<char>((length >> (8 * i)) & 0xFFU);
  framed += message;
  std::size_t done = 0;
  while (done < framed.size()) {
    // No SIGPIPE when the worker is gone; a pipe instead of a socket (tests) knows no send().
    ssize_t sent = ::send(descriptor, framed.data() + done, framed.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK)
      sent = ::write(descriptor, framed.data() + done, framed.size() - done);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return fail(base::os_error("writing an answer", errno));
    done += static_cast<std::size_t>(sent);
  }
  return {};
}

}  // namespace layerfarm::worker::ort
