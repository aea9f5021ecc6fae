// Where things are kept on this machine.
#pragma once

#include <filesystem>
#include <string>

namespace layerfarm::base {

/// `$LAYERFARM_CACHE_DIR`, else `$TORQ_GEN_CONFIG_CACHE_DIR`, else `$XDG_CACHE_HOME/layerfarm`,
/// else `~/.cache/layerfarm`; absolute.
[[nodiscard]] std::filesystem::path cache_folder();
/// Where scripts/setup puts what it builds and installs: `$LAYERFARM_DEPS_DIR`, else
/// `$XDG_CACHE_HOME/layerfarm-deps`, else `~/.cache/layerfarm-deps`; absolute.
[[nodiscard]] std::filesystem::path dependencies_folder();
/// Folder of the running program; the other programs of layerfarm are beside it.
[[nodiscard]] std::filesystem::path program_folder();
/// Environment variable, empty when unset.
[[nodiscard]] std::string environment(const char* name);

}  // namespace layerfarm::base
