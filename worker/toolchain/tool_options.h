// Options of a chip or executor (docs/chips.md), read as adapters need them. Pure.
#pragma once

#include <string>

#include "shared/domain/chip.h"

namespace layerfarm::worker::toolchain {

/// An option's text; `otherwise` when it is not there or empty.
[[nodiscard]] std::string text_option(const domain::Options& options, const std::string& key,
                                      const std::string& otherwise);
/// An option's whole number in [least, most]; `otherwise` when it is not there or no such number.
[[nodiscard]] int number_option(const domain::Options& options, const std::string& key,
                                int otherwise, int least, int most);
/// Entries that begin with `prefix`, without it.
[[nodiscard]] domain::Options options_with_prefix(const domain::Options& options,
                                                  const std::string& prefix);

}  // namespace layerfarm::worker::toolchain
