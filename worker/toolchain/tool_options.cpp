#include "worker/toolchain/tool_options.h"

#include <charconv>
#include <system_error>

namespace layerfarm::worker::toolchain {

std::string text_option(const domain::Options& options, const std::string& key,
                        const std::string& otherwise) {
  const auto found = options.find(key);
  return found == options.end() || found->second.empty() ? otherwise : found->second;
}

int number_option(const domain::Options& options, const std::string& key, int otherwise, int least,
                  int most) {
  const auto found = options.find(key);
  if (found == options.end()) return otherwise;
  int value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, failed] = std::from_chars(found->second.data(), end, value);
  return failed == std::errc() && stop == end && value >= least && value <= most ? value
                                                                                 : otherwise;
}

domain::Options options_with_prefix(const domain::Options& options, const std::string& prefix) {
  domain::Options out;
  for (const auto& [key, value] : options) {
    if (key.starts_with(prefix) && key.size() > prefix.size())
      out.emplace(key.substr(prefix.size()), value);
  }
  return out;
}

}  // namespace layerfarm::worker::toolchain
