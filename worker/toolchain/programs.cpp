#include "worker/toolchain/programs.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "shared/base/build_info.h"
#include "shared/base/places.h"

namespace layerfarm::worker::toolchain {
namespace fs = std::filesystem;
namespace {

/// The folder that holds bin and share. A test program of a build lies one folder deeper, in
/// tests/bin.
fs::path prefix() {
  const fs::path folder = base::program_folder().parent_path();
  return folder.filename() == "tests" ? folder.parent_path() : folder;
}

fs::path packages_in(std::string_view folder) {
  return base::dependencies_folder() / folder / "site-packages";
}

/// The environment's own packages, and those of every toolchain, there or not.
std::vector<fs::path> package_folders() {
  std::vector<fs::path> out = {packages_in(base::kPythonFolder)};
  for (const base::InstallableToolchain& each : base::kToolchains)
    out.push_back(packages_in(each.folder));
  return out;
}

/// The package's record folder, `<name>-<version>.dist-info`.
fs::path record_folder(const std::string& name) {
  std::error_code error;
  for (const fs::path& packages : package_folders()) {
    for (const auto& entry : fs::directory_iterator(packages, error)) {
      const std::string folder = entry.path().filename().string();
      if (folder.rfind(name + "-", 0) == 0 && entry.path().extension() == ".dist-info")
        return entry.path();
    }
  }
  return {};
}

}  // namespace

fs::path own_program(const std::string& name) {
  const fs::path beside = base::program_folder() / name;
  std::error_code error;
  return fs::exists(beside, error) ? beside : prefix() / "bin" / name;
}

fs::path sidecar_script() { return prefix() / "share" / "layerfarm" / "sidecar" / "sidecar.py"; }
fs::path quantizer_script() {
  return prefix() / "share" / "layerfarm" / "sidecar" / "quantization.py";
}

fs::path python_environment() { return base::dependencies_folder() / base::kPythonFolder; }
fs::path python_program() { return python_environment() / "bin" / "python"; }

fs::path packages_of(std::string_view toolchain) {
  for (const base::InstallableToolchain& each : base::kToolchains) {
    if (each.name == toolchain) return packages_in(each.folder);
  }
  return packages_in(base::kPythonFolder);
}

fs::path package_folder(const std::string& name) {
  std::error_code error;
  for (const fs::path& packages : package_folders()) {
    if (fs::is_directory(packages / name, error)) return packages / name;
  }
  return packages_of(toolchain_with(name)) / name;
}

std::string_view toolchain_with(std::string_view package) {
  for (const base::InstallableToolchain& each : base::kToolchains) {
    const std::string list = " " + std::string(each.packages) + " ";
    if (!package.empty() && list.find(" " + std::string(package) + " ") != std::string::npos)
      return each.name;
  }
  return {};
}

std::string how_to_install(std::string_view toolchain) {
  return "run: layerfarm toolchains install " + std::string(toolchain);
}

bool is_program(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

std::vector<fs::path> path_list(const std::string& text) {
  std::vector<fs::path> out;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find(':', from), text.size());
    if (to > from) out.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return out;
}

fs::path find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos)
    return fs::is_regular_file(name, error) ? fs::path(name) : fs::path();
  for (const fs::path& folder : path_list(base::environment("PATH"))) {
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  }
  return {};
}

std::string package_version(const std::string& name) {
  const std::string stem = record_folder(name).stem().string();
  return stem.size() > name.size() ? stem.substr(name.size() + 1) : std::string();
}

fs::path package_record(const std::string& name) {
  const fs::path folder = record_folder(name);
  return folder.empty() ? folder : folder / "RECORD";
}

}  // namespace layerfarm::worker::toolchain
