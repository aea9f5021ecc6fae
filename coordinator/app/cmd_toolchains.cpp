#include "coordinator/app/cmd_toolchains.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "shared/base/build_info.h"
#include "shared/base/exit_code.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ExitCode;

namespace {

bool is_installed(const base::InstallableToolchain& toolchain) {
  const fs::path cache = base::dependencies_folder();
  std::error_code error;
  return fs::exists(cache / base::kPythonFolder / ".complete", error) &&
         fs::exists(cache / toolchain.folder / ".complete", error);
}

void print_json() {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const base::InstallableToolchain& each : base::kToolchains) {
    out.push_back({{"toolchain", each.name},
                   {"version", each.version},
                   {"installed", is_installed(each)},
                   {"folder", (base::dependencies_folder() / each.folder).string()},
                   {"what", each.what}});
  }
  std::cout << out.dump(2) << "\n";
}

void print_table() {
  const auto padded = [](std::string_view text, std::size_t width) {
    std::string out(text);
    out.resize(std::max(width, out.size()), ' ');
    return out + "  ";
  };
  std::size_t names = 9, versions = 7;  // widths of the headings
  for (const base::InstallableToolchain& each : base::kToolchains) {
    names = std::max(names, each.name.size());
    versions = std::max(versions, each.version.size());
  }
  std::cout << padded("Toolchain", names) << padded("Version", versions) << "Installed  What\n";
  for (const base::InstallableToolchain& each : base::kToolchains) {
    std::cout << padded(each.name, names) << padded(each.version, versions)
              << padded(is_installed(each) ? "yes" : "no", 9) << each.what << "\n";
  }
  std::cout
      << "\nFolder: " << base::dependencies_folder().string()
      << "\nONNX Runtime (ort-cpu) comes with layerfarm; the torq tools are your own. What each "
         "chip has and lacks: layerfarm chips\n";
}

/// Runs the script in place of this program, so that its exit code and a break are its own.
int install(const std::vector<std::string>& names) {
  const fs::path script =
      base::program_folder().parent_path() / "share" / "layerfarm" / "toolchains" / "toolchains.py";
  std::error_code error;
  if (!fs::exists(script, error)) {
    std::cerr << "Error: " << script.string() << " is missing: install layerfarm again\n";
    return static_cast<int>(ExitCode::Failed);
  }
  // -I -B: nothing of the user's Python settings gets in, and nothing is written beside the script.
  std::vector<std::string> words = {"python3", "-I", "-B", script.string(), "install"};
  words.insert(words.end(), names.begin(), names.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::cout.flush();
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  // The one that the packages are made for, where there are several.
  ::execvp("python3.11", argv.data());
  ::execvp("python3", argv.data());
  std::cerr << "Error: cannot start python3 ("
            << std::error_code(errno, std::generic_category()).message()
            << "); install the Debian packages python3 and python3-venv\n";
  return static_cast<int>(ExitCode::Failed);
}

}  // namespace

std::vector<std::string> installable_names() {
  std::vector<std::string> out;
  for (const base::InstallableToolchain& each : base::kToolchains) out.emplace_back(each.name);
  out.emplace_back("all");
  return out;
}

int cmd_toolchains(const ToolchainsOptions& options) {
  if (options.install) return install(options.names);
  options.json ? print_json() : print_table();
  return static_cast<int>(ExitCode::Success);
}

}  // namespace layerfarm::coordinator::app
