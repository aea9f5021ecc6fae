// What processor this machine has, as far as code made for it and numbers computed on it depend on
// it.
#pragma once

#include <string>

namespace layerfarm::worker::toolchain {

/// "AMD EPYC 9R14 96-Core Processor", or "unknown".
[[nodiscard]] std::string cpu_model();
/// "GenuineIntel", "AuthenticAMD" ..., or "unknown".
[[nodiscard]] std::string cpu_vendor();
/// Model and a digest of its features: equal texts run equal code with equal results.
[[nodiscard]] std::string cpu_identity();

/// The same from the text of /proc/cpuinfo. For tests.
[[nodiscard]] std::string cpu_model_of(const std::string& cpuinfo);
[[nodiscard]] std::string cpu_vendor_of(const std::string& cpuinfo);
[[nodiscard]] std::string cpu_identity_of(const std::string& cpuinfo);

}  // namespace layerfarm::worker::toolchain
