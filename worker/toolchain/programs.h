// Where the programs and files are that toolchains start: beside the worker, or in the dependency
// cache. No activation, no PATH, no path of the building machine (docs/setup.md). Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace layerfarm::worker::toolchain {

/// A program of layerfarm, beside this one ("layerfarm-ort").
[[nodiscard]] std::filesystem::path own_program(const std::string& name);
/// The sidecar's script: share/layerfarm/sidecar/sidecar.py of the build or the installation.
[[nodiscard]] std::filesystem::path sidecar_script();
/// What that script reads beside itself.
[[nodiscard]] std::filesystem::path quantizer_script();

/// The Python environment of the dependency cache, and its interpreter; it finds the packages of
/// all installed toolchains.
[[nodiscard]] std::filesystem::path python_environment();
[[nodiscard]] std::filesystem::path python_program();
/// The folder of the packages of an installable toolchain ("iree"), there or not.
[[nodiscard]] std::filesystem::path packages_of(std::string_view toolchain);
/// What `import` calls the package: its folder among those of the environment and the toolchains;
/// where it is not installed, the place where it would be looked for first.
[[nodiscard]] std::filesystem::path package_folder(const std::string& name);
/// The installable toolchain that brings a package; empty when none does.
[[nodiscard]] std::string_view toolchain_with(std::string_view package);
/// For people: the command that installs a toolchain.
[[nodiscard]] std::string how_to_install(std::string_view toolchain);

/// Whether there is a file that can be started.
[[nodiscard]] bool is_program(const std::filesystem::path& file);
/// The folders of a PATH-like list, empty entries left out.
[[nodiscard]] std::vector<std::filesystem::path> path_list(const std::string& text);
/// The program that a name (looked up in PATH) or a path stands for; empty when there is none.
[[nodiscard]] std::filesystem::path find_program(const std::string& name);

/// Version of an installed package, from the name of its record folder; empty when it is not there.
/// `name` as in that folder ("iree_base_compiler").
[[nodiscard]] std::string package_version(const std::string& name);
/// That package's RECORD: a list of all its files with their digests, so its digest names the whole
/// package.
[[nodiscard]] std::filesystem::path package_record(const std::string& name);

}  // namespace layerfarm::worker::toolchain
