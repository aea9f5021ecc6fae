#include "worker/ort/session.h"

#include <algorithm>
#include <utility>

#include "shared/base/files.h"

namespace layerfarm::worker::ort {
namespace {

using domain::DType;
using domain::TensorType;

Declared declared(std::string name, const Ort::TypeInfo& info) {
  Declared out{std::move(name), false, {}};
  if (info.GetONNXType() != ONNX_TYPE_TENSOR) return out;
  const auto tensor = info.GetTensorTypeAndShapeInfo();
  out.tensor = true;
  // ONNX Runtime numbers its element types as ONNX does.
  out.type.dtype = static_cast<DType>(tensor.GetElementType());
  out.type.dims = tensor.GetShape();
  return out;
}

std::string type_text(const TensorType& type) {
  std::string out = domain::dtype_name(type.dtype) + "[";
  for (std::size_t i = 0; i < type.dims.size(); ++i)
    out +=
        (i > 0 ? "," : "") + (type.dims[i] < 0 ? std::string("?") : std::to_string(type.dims[i]));
  return out + "]";
}

bool fits(const TensorType& wanted, const TensorType& given) {
  if (wanted.dtype != given.dtype || wanted.dims.size() != given.dims.size()) return false;
  for (std::size_t i = 0; i < wanted.dims.size(); ++i) {
    if (wanted.dims[i] >= 0 && wanted.dims[i] != given.dims[i]) return false;
  }
  return true;
}

std::vector<const char*> names_of(const std::vector<Declared>& declared) {
  std::vector<const char*> out;
  for (const Declared& one : declared) out.push_back(one.name.c_str());
  return out;
}

}  // namespace

Ort::SessionOptions session_options(Runtime& runtime, const SessionRequest& request) {
  Ort::SessionOptions options;
  options.SetGraphOptimizationLevel(request.optimize ? ORT_ENABLE_ALL : ORT_DISABLE_ALL);
  options.SetLogSeverityLevel(ORT_LOGGING_LEVEL_ERROR);
  if (request.threads > 0) options.SetIntraOpNumThreads(request.threads);
  // Spinning threads would take the cores of other workers.
  options.AddConfigEntry("session.intra_op.allow_spinning", "0");
  options.AddConfigEntry("session.inter_op.allow_spinning", "0");
  if (request.provider) {
    if (request.no_fallback) options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
    if (auto appended = runtime.append(*request.provider, options); !appended)
      throw Failure{"compile", appended.error().text()};
  }
  for (const auto& [key, value] : request.config)
    options.AddConfigEntry(key.c_str(), value.c_str());
  return options;
}

Ort::Session open_session(Runtime& runtime, const SessionRequest& request,
                          const Ort::SessionOptions& options) {
  return Ort::Session(runtime.environment(), request.model.c_str(), options);
}

std::vector<Declared> declared_inputs(const Ort::Session& session) {
  const Ort::AllocatorWithDefaultOptions allocator;
  std::vector<Declared> out;
  for (std::size_t i = 0; i < session.GetInputCount(); ++i) {
    out.push_back(
        declared(session.GetInputNameAllocated(i, allocator).get(), session.GetInputTypeInfo(i)));
  }
  return out;
}

std::vector<Declared> declared_outputs(const Ort::Session& session) {
  const Ort::AllocatorWithDefaultOptions allocator;
  std::vector<Declared> out;
  for (std::size_t i = 0; i < session.GetOutputCount(); ++i) {
    out.push_back(
        declared(session.GetOutputNameAllocated(i, allocator).get(), session.GetOutputTypeInfo(i)));
  }
  return out;
}

Loaded make_tensor(std::string bytes, const TensorType& type) {
  static const Ort::MemoryInfo memory =
      Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  if (domain::dtype_size(type.dtype) == 0)
    throw Failure{"run", "a tensor of type " + domain::dtype_name(type.dtype) + " cannot be made"};
  if (bytes.size() != type.bytes()) {
    throw Failure{"run", "a tensor " + type_text(type) + " takes " + std::to_string(type.bytes()) +
                             " bytes, not " + std::to_string(bytes.size())};
  }
  Loaded out{std::make_unique<std::string>(std::move(bytes)), Ort::Value(nullptr)};
  out.value = Ort::Value::CreateTensor(memory, out.bytes->data(), out.bytes->size(),
                                       type.dims.data(), type.dims.size(),
                                       static_cast<ONNXTensorElementDataType>(type.dtype));
  return out;
}

std::vector<Loaded> load_inputs(const Ort::Session& session, const std::vector<TensorFile>& files) {
  const std::vector<Declared> wanted = declared_inputs(session);
  if (wanted.size() != files.size()) {
    throw Failure{"run", "the model takes " + std::to_string(wanted.size()) + " inputs, " +
                             std::to_string(files.size()) + " are given"};
  }
  std::vector<Loaded> out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!wanted[i].tensor || !fits(wanted[i].type, files[i].type)) {
      throw Failure{"run",
                    "input " + std::to_string(i) + " is given as " + type_text(files[i].type) +
                        ", the model wants " +
                        (wanted[i].tensor ? type_text(wanted[i].type) : std::string("no tensor"))};
    }
    auto bytes = base::read_file(files[i].file, std::uint64_t{1} << 34);
    if (!bytes) throw Failure{"run", "input " + std::to_string(i) + ": " + bytes.error().text()};
    out.push_back(make_tensor(std::move(*bytes), files[i].type));
  }
  return out;
}

TensorType type_of(const Ort::Value& value) {
  TensorType type;
  if (!value.HasValue() || !value.IsTensor()) return type;
  const auto info = value.GetTensorTypeAndShapeInfo();
  type.dtype = static_cast<DType>(info.GetElementType());
  type.dims = info.GetShape();
  return type;
}

base::BytesView bytes_of(const Ort::Value& value, const TensorType& type) {
  if (type.bytes() == 0) return {};
  return {static_cast<const char*>(value.GetTensorRawData()),
          static_cast<std::size_t>(type.bytes())};
}

std::vector<Ort::Value> run(Ort::Session& session, const std::vector<Declared>& inputs,
                            const std::vector<Declared>& outputs,
                            const std::vector<Loaded>& values) {
  const std::vector<const char*> input_names = names_of(inputs);
  const std::vector<const char*> output_names = names_of(outputs);
  // The C++ class takes values one after the other in memory, and each is no more than its handle.
  std::vector<const OrtValue*> handles;
  for (const Loaded& loaded : values) handles.push_back(loaded.value);
  std::vector<OrtValue*> made(outputs.size(), nullptr);
  Ort::ThrowOnError(Ort::GetApi().Run(session, Ort::RunOptions(), input_names.data(),
                                      handles.data(), handles.size(), output_names.data(),
                                      output_names.size(), made.data()));
  std::vector<Ort::Value> out;
  for (OrtValue* value : made) out.emplace_back(value);
  return out;
}

}  // namespace layerfarm::worker::ort
