#include "shared/base/result.h"

#include <cerrno>
#include <system_error>

namespace layerfarm::base {

std::string Error::text() const {
  std::string out;
  for (auto it = context.rbegin(); it != context.rend(); ++it) {
    out += *it;
    out += ": ";
  }
  return out + message;
}

Error Error::with(std::string line) && {
  context.push_back(std::move(line));
  return std::move(*this);
}

Error os_error(const std::string& what, int error_number) {
  const ErrorCode code = error_number == ENOENT ? ErrorCode::NotFound : ErrorCode::Internal;
  return Error{code, what + ": " + std::generic_category().message(error_number)};
}

}  // namespace layerfarm::base
