#include "worker/toolchain/cpu.h"

#include <set>
#include <sstream>

#include "shared/base/digest.h"
#include "shared/base/files.h"

namespace layerfarm::worker::toolchain {
namespace {

/// Value of the first line `<name> : <value>`.
std::string field(const std::string& cpuinfo, const std::string& name) {
  std::istringstream lines(cpuinfo);
  std::string line;
  while (std::getline(lines, line)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.rfind(name, 0) != 0) continue;
    if (line.find_last_not_of(" \t", colon - 1) + 1 != name.size()) continue;  // a longer name
    const auto from = line.find_first_not_of(" \t", colon + 1);
    return from == std::string::npos ? std::string() : line.substr(from);
  }
  return {};
}

std::string cpuinfo() {
  return base::read_file("/proc/cpuinfo", std::uint64_t{64} << 20).value_or("");
}

}  // namespace

std::string cpu_model_of(const std::string& cpuinfo) {
  const std::string model = field(cpuinfo, "model name");
  return model.empty() ? "unknown" : model;
}

std::string cpu_vendor_of(const std::string& cpuinfo) {
  const std::string vendor = field(cpuinfo, "vendor_id");
  return vendor.empty() ? "unknown" : vendor;
}

std::string cpu_identity_of(const std::string& cpuinfo) {
  std::istringstream words(field(cpuinfo, "flags"));
  std::set<std::string> features;  // their order says nothing
  for (std::string word; words >> word;) features.insert(word);
  base::Hasher hasher("layerfarm.cpu.1");
  for (const char* name : {"vendor_id", "cpu family", "model"}) hasher.add(field(cpuinfo, name));
  for (const std::string& feature : features) hasher.add(feature);
  return cpu_model_of(cpuinfo) + " " + hasher.finish().hex().substr(0, 12);
}

std::string cpu_model() { return cpu_model_of(cpuinfo()); }
std::string cpu_vendor() { return cpu_vendor_of(cpuinfo()); }
std::string cpu_identity() {
  static const std::string identity = cpu_identity_of(cpuinfo());
  return identity;
}

}  // namespace layerfarm::worker::toolchain
