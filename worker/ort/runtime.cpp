#include "worker/ort/runtime.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "shared/base/onnxruntime_library.h"
#include "worker/ort/log.h"

namespace layerfarm::worker::ort {
namespace {

using base::ErrorCode;
using base::fail;

std::string device_type(const Ort::ConstEpDevice& device) {
  switch (device.Device().Type()) {
    case OrtHardwareDeviceType_CPU:
      return "CPU";
    case OrtHardwareDeviceType_GPU:
      return "GPU";
    case OrtHardwareDeviceType_NPU:
      return "NPU";
  }
  return "other";
}

}  // namespace

base::Result<Runtime> Runtime::open() {
  const std::filesystem::path path = base::onnxruntime_library();
  // Global, because plug-ins may look for the library's own symbols. Never closed: its threads end
  // with the process.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorCode::Unavailable,
                std::string("cannot open the ONNX Runtime library (it comes with an installed "
                            "layerfarm; scripts/setup fetches it for a checkout): ") +
                    (reason != nullptr ? reason : path.string()));
  }
  using GetBase = const OrtApiBase* (*)();
  const auto get_base = reinterpret_cast<GetBase>(::dlsym(library, "OrtGetApiBase"));
  const OrtApiBase* base = get_base != nullptr ? get_base() : nullptr;
  const OrtApi* api = base != nullptr ? base->GetApi(kApiVersion) : nullptr;
  if (api == nullptr) {
    return fail(ErrorCode::Unavailable, path.string() + " has no interface " +
                                            std::to_string(kApiVersion) +
                                            " (ONNX Runtime 1.22 or later is needed)");
  }
  Ort::InitApi(api);
  try {
    // Errors come back as text; all else that is logged goes through log_line.
    return Runtime(base->GetVersionString(),
                   Ort::Env(ORT_LOGGING_LEVEL_ERROR, "layerfarm", log_line, nullptr));
  } catch (const Ort::Exception& error) {
    return fail(ErrorCode::Unavailable,
                std::string("ONNX Runtime does not start: ") + error.what());
  }
}

base::Result<void> Runtime::append(const Provider& provider, Ort::SessionOptions& options) {
  // Registered under the provider's own name: QNN's devices are called as their library was
  // registered.
  const auto known = registered_.find(provider.name);
  if (known == registered_.end()) {
    environment_.RegisterExecutionProviderLibrary(provider.name.c_str(), provider.library);
    registered_.emplace(provider.name, provider.library);
  } else if (known->second != provider.library) {
    return fail(ErrorCode::InvalidInput,
                provider.name + " is already loaded from another library: " + known->second);
  }
  std::vector<Ort::ConstEpDevice> chosen;
  std::string seen;
  for (const Ort::ConstEpDevice& device : environment_.GetEpDevices()) {
    const std::string type = device_type(device);
    seen += (seen.empty() ? "" : ", ") + std::string(device.EpName()) + " on " + type;
    if (device.EpName() != provider.name) continue;
    if (provider.device.empty() || provider.device == type) chosen.push_back(device);
  }
  if (chosen.empty()) {
    return fail(ErrorCode::Unavailable,
                "the provider " + provider.name + " has no device" +
                    (provider.device.empty() ? std::string() : " of type " + provider.device) +
                    " here (there are: " + seen + ")");
  }
  chosen.resize(1);  // several devices of one kind would share a session; a case is for one
  Ort::KeyValuePairs pairs;
  for (const auto& [key, value] : provider.options) pairs.Add(key.c_str(), value.c_str());
  options.AppendExecutionProvider_V2(environment_, chosen, pairs);
  return {};
}

}  // namespace layerfarm::worker::ort
