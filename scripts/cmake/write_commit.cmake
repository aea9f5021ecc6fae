cmake_minimum_required(VERSION 3.25)
# Run at build time with SOURCE_DIR and OUTPUT: writes the commit of the checkout into a source file.
execute_process(
  COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --exclude=* --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "shared/base/build_info.h"

namespace layerfarm::base {
std::string_view build_commit() { return "@commit@"; }
}  // namespace layerfarm::base
]] @ONLY)
