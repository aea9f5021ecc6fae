// Where the programs and files are that toolchains start: beside the worker, or in the dependency
// cache. No activation, no PATH, no path of the building machine (docs/setup.md). Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace layerfarm::worker::toolchain {

/// A program of layerfarm, beside this one ("layerfarm-ort").
[[nodiscard]] std::filesystem::path own_program(const std::string& name);
/// The sidecar's script: share/layerfarm/sidecar/sidecar.py of the build or the installation.
[[nodiscard]] std::filesystem::path sidecar_script();
/// What that script reads beside itself.
[[nodiscard]] std::filesystem::path quantizer_script();

/// The Python environment of the dependency cache, its interpreter, and the folder of its packages.
[[nodiscard]] std::filesystem::path python_environment();
[[nodiscard]] std::filesystem::path python_program();
[[nodiscard]] std::filesystem::path python_packages();
/// The folder of the ONNX Runtime library: `$ONNXRUNTIME_ROOT`, else that of the dependency cache.
[[nodiscard]] std::filesystem::path onnxruntime_folder();

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
