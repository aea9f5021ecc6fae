#include "shared/base/places.h"

#include <cstdlib>

namespace layerfarm::base {
namespace fs = std::filesystem;
namespace {

fs::path home() {
  std::string home = environment("HOME");
  return home.empty() ? fs::path("/") : fs::path(home);
}

fs::path under_cache(const std::string& name) {
  const std::string xdg = environment("XDG_CACHE_HOME");
  return fs::absolute((xdg.empty() ? home() / ".cache" : fs::path(xdg)) / name);
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

fs::path cache_folder() {
  for (const char* name : {"LAYERFARM_CACHE_DIR", "TORQ_GEN_CONFIG_CACHE_DIR"}) {
    if (const std::string value = environment(name); !value.empty()) return fs::absolute(value);
  }
  return under_cache("layerfarm");
}

fs::path dependencies_folder() {
  const std::string value = environment("LAYERFARM_DEPS_DIR");
  return value.empty() ? under_cache("layerfarm-deps") : fs::absolute(value);
}

fs::path program_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::current_path() : self.parent_path();
}

}  // namespace layerfarm::base
