// A chip file that somebody edited: reading it ends in a chip or in an Error that names the file.
#include <cstddef>
#include <cstdint>
#include <string>

#include "shared/base/check.h"
#include "shared/domain/chip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto chip = layerfarm::domain::parse_chip(text, "some.chip");
  if (!chip) LAYERFARM_CHECK(chip.error().text().find("some.chip") != std::string::npos);
  return 0;
}
