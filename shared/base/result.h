// Result<T>: the value, or an Error that a caller handles or a person reads.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace layerfarm::base {

/// A code exists only where some caller reacts to exactly it.
enum class ErrorCode {
  InvalidInput,  ///< a file, flag or peer gave something wrong; the message says what
  NotFound,      ///< the named thing does not exist
  Unavailable,   ///< a tool, device or peer is not there now
  TimedOut,      ///< a deadline passed
  Corrupt,       ///< stored bytes do not match their checksum or form
  Incompatible,  ///< another version or other settings
  Cancelled,     ///< somebody asked to stop
  Internal,      ///< the operating system or a library failed in a way nobody expected
};

/// What happened (`message`), and, outermost last, where (`context`).
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
  std::vector<std::string> context = {};

  /// One line for a person: outermost context first, then the message.
  [[nodiscard]] std::string text() const;
  /// The same error with one more line of context, added on the way up.
  [[nodiscard]] Error with(std::string line) &&;
};

template <typename T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail(ErrorCode::X, "...")`.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
/// errno as an Error: "<what>: <strerror>".
[[nodiscard]] Error os_error(const std::string& what, int error_number);

}  // namespace layerfarm::base
