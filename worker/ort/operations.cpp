#include "worker/ort/operations.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "shared/base/files.h"
#include "worker/ort/log.h"
#include "worker/ort/model_bytes.h"
#include "worker/ort/request.h"
#include "worker/ort/session.h"

namespace layerfarm::worker::ort {
namespace {

using domain::DType;
using domain::TensorType;
using nlohmann::json;

std::string failed(const std::string& where, const std::string& text) {
  // Vendors' words come in any encoding.
  return json{{"ok", false}, {"where", where}, {"text", text}}.dump(-1, ' ', false,
                                                                    json::error_handler_t::replace);
}

class Watch {
 public:
  [[nodiscard]] std::int64_t microseconds() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() -
                                                                 start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs `work`; what it throws becomes a Failure of that step.
template <typename Work>
auto in_step(const char* where, const Work& work) {
  try {
    return work();
  } catch (const Ort::Exception& error) {
    throw Failure{where, error.what()};
  }
}

struct Opened {
  Ort::Session session;
  std::int64_t took_us = 0;
};

/// Makes the session, `configure` adding to its options. Where a provider refuses, it is asked once
/// more with everything logged, so that the answer begins with its reasons; what refused is what
/// the first try says. `configure` is called before each of the two and clears what the one before
/// wrote.
template <typename Configure>
Opened make_session(Runtime& runtime, const SessionRequest& request, const Configure& configure) {
  const auto attempt = [&](OrtLoggingLevel level) {
    Ort::SessionOptions options = session_options(runtime, request);
    options.SetLogSeverityLevel(level);
    configure(options);
    const Watch watch;
    Ort::Session session = open_session(runtime, request, options);
    return Opened{std::move(session), watch.microseconds()};
  };
  std::string refusal;
  try {
    return attempt(ORT_LOGGING_LEVEL_ERROR);
  } catch (const Ort::Exception& error) {
    // The CPU provider says all there is to say by itself.
    if (!request.provider) throw Failure{"import", error.what()};
    refusal = error.what();
  }
  const Listener listener;
  try {
    return attempt(ORT_LOGGING_LEVEL_VERBOSE);
  } catch (const Ort::Exception&) {
    std::string text;
    for (const std::string& reason : listener.reasons()) text += reason + "\n";
    throw Failure{"compile", text + refusal};
  }
}

Opened open(Runtime& runtime, const SessionRequest& request) {
  return make_session(runtime, request, [](Ort::SessionOptions&) {});
}

json describe(Runtime& runtime) {
  return {{"ok", true},
          {"version", runtime.version()},
          {"api", kApiVersion},
          {"providers", Ort::GetAvailableProviders()}};
}

json run_once(Runtime& runtime, const RunRequest& request) {
  Opened opened = open(runtime, request.session);
  return in_step("run", [&] {
    const std::vector<Loaded> inputs = load_inputs(opened.session, request.inputs);
    const std::vector<Declared> declared = declared_outputs(opened.session);
    const std::vector<Declared> wanted = declared_inputs(opened.session);
    const Watch watch;
    const std::vector<Ort::Value> outputs = run(opened.session, wanted, declared, inputs);
    const std::int64_t run_us = watch.microseconds();
    json files = json::array();
    std::uint64_t written = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorType type = type_of(outputs[i]);
      if (domain::dtype_size(type.dtype) == 0) {
        throw Failure{
            "run", "output " + std::to_string(i) +
                       " is no tensor of a type that can be compared (" +
                       (type.dtype == DType::Undefined ? std::string("a sequence, map or nothing")
                                                       : domain::dtype_name(type.dtype)) +
                       ")"};
      }
      written += type.bytes();
      if (request.output_limit != 0 && written > request.output_limit) {
        throw Failure{
            "run", "the outputs take more than " + std::to_string(request.output_limit) + " bytes"};
      }
      const std::filesystem::path file =
          std::filesystem::path(request.output_folder) / ("output_" + std::to_string(i) + ".bin");
      if (auto stored =
              base::write_file_atomically(file, bytes_of(outputs[i], type), base::Sync::No);
          !stored) {
        throw Failure{"store", stored.error().text()};
      }
      files.push_back(
          {{"file", file.string()}, {"dtype", static_cast<int>(type.dtype)}, {"dims", type.dims}});
    }
    return json{
        {"ok", true}, {"outputs", files}, {"session_us", opened.took_us}, {"run_us", run_us}};
  });
}

json time_runs(Runtime& runtime, const TimeRequest& request) {
  Opened opened = open(runtime, request.session);
  return in_step("run", [&] {
    const std::vector<Loaded> inputs = load_inputs(opened.session, request.inputs);
    const std::vector<Declared> declared = declared_outputs(opened.session);
    const std::vector<Declared> wanted = declared_inputs(opened.session);
    for (int i = 0; i < request.warm_up; ++i)
      static_cast<void>(run(opened.session, wanted, declared, inputs));
    std::vector<std::int64_t> runs_us;
    for (int i = 0; i < request.runs; ++i) {
      const Watch watch;
      const std::vector<Ort::Value> outputs = run(opened.session, wanted, declared, inputs);
      runs_us.push_back(watch.microseconds());
    }
    return json{{"ok", true}, {"runs_us", runs_us}, {"session_us", opened.took_us}};
  });
}

json compile(Runtime& runtime, const CompileRequest& request) {
  if (!request.session.provider)
    throw Failure{
        "request",
        "compiling needs a provider: ONNX Runtime's CPU provider makes no context binaries"};
  const std::filesystem::path output = request.output;
  const std::filesystem::path folder = output.parent_path();
  const auto files_now = [&] {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  };
  const std::vector<std::string> before = files_now();
  const auto is_new = [&before](const std::string& name) {
    return !std::binary_search(before.begin(), before.end(), name);
  };
  std::error_code ignored;
  const Opened opened = make_session(runtime, request.session, [&](Ort::SessionOptions& options) {
    // A try that fails may leave a context model of the nodes that were taken, and the runtime
    // refuses to write over one.
    for (const std::string& name : files_now()) {
      if (is_new(name)) std::filesystem::remove_all(folder / name, ignored);
    }
    options.AddConfigEntry("ep.context_enable", "1");
    options.AddConfigEntry("ep.context_embed_mode", "0");
    options.AddConfigEntry("ep.context_file_path", request.output.c_str());
  });
  json files = json::array();
  // Nothing is written when the provider makes no such binaries, or nothing was left for it once
  // constants were folded.
  if (std::filesystem::is_regular_file(output, ignored))
    files.push_back(output.filename().string());
  for (const std::string& name : files_now()) {
    if (name != output.filename() && is_new(name)) files.push_back(name);
  }
  return {{"ok", true}, {"files", files}, {"session_us", opened.took_us}};
}

// --- shapes ---

/// Bytes of a tensor all of whose elements are 0 or 1.
std::string constant_bytes(const TensorType& type, bool ones) {
  std::string one;
  const auto element = [&](auto value) {
    one.assign(reinterpret_cast<const char*>(&value), sizeof value);
  };
  switch (type.dtype) {
    case DType::Float32:
      element(1.0F);
      break;
    case DType::Float64:
      element(1.0);
      break;
    case DType::Float16:
      element(std::uint16_t{0x3C00});
      break;
    case DType::BFloat16:
      element(std::uint16_t{0x3F80});
      break;
    case DType::Int64:
    case DType::UInt64:
      element(std::int64_t{1});
      break;
    case DType::Int32:
    case DType::UInt32:
      element(std::int32_t{1});
      break;
    case DType::Int16:
    case DType::UInt16:
      element(std::int16_t{1});
      break;
    default:
      element(std::int8_t{1});
      break;
  }
  std::string out(type.bytes(), '\0');
  for (std::size_t i = 0; ones && i + one.size() <= out.size(); i += one.size())
    std::copy(one.begin(), one.end(), out.begin() + static_cast<std::ptrdiff_t>(i));
  return out;
}

enum class Fill { Zeros, Ones, Range };
const char* fill_name(Fill fill) {
  return fill == Fill::Zeros ? "zeros" : fill == Fill::Ones ? "ones" : "range";
}

/// What each input of the session shall be: as the request says, else as declared with 1 for each
/// unknown dim.
std::vector<domain::InputSpec> input_specs(const std::vector<Declared>& wanted,
                                           const std::vector<NamedInput>& named) {
  std::vector<domain::InputSpec> specs;
  for (const Declared& input : wanted) {
    if (!input.tensor || domain::dtype_size(input.type.dtype) == 0) {
      throw Failure{"run", "input '" + input.name + "' is no tensor of a type that can be filled"};
    }
    const auto it = std::find_if(named.begin(), named.end(),
                                 [&](const NamedInput& one) { return one.name == input.name; });
    domain::InputSpec spec;
    if (it != named.end()) {
      spec = it->spec;
    } else {
      spec.type = input.type;
      for (std::int64_t& dim : spec.type.dims) dim = dim < 0 ? 1 : dim;
      const bool is_unsigned = domain::dtype_name(spec.type.dtype).starts_with("uint");
      if (is_unsigned) spec.lo = 0, spec.hi = 80;
    }
    if (spec.type.bytes() > (std::uint64_t{1} << 34))
      throw Failure{"run", "input '" + input.name + "' is too large"};
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// Inputs with given values have them in every attempt.
std::vector<Loaded> filled_inputs(const std::vector<domain::InputSpec>& specs, Fill fill) {
  std::vector<domain::InputSpec> drawn_specs;
  std::vector<std::uint32_t> order;
  for (const domain::InputSpec& spec : specs) {
    if (fill != Fill::Range && spec.values.empty()) continue;
    order.push_back(static_cast<std::uint32_t>(drawn_specs.size()));
    drawn_specs.push_back(spec);
  }
  auto drawn = domain::draw_inputs(drawn_specs, order, domain::kInputSeed);
  if (!drawn) throw Failure{"run", drawn.error().text()};
  std::vector<Loaded> out;
  std::size_t next = 0;
  for (const domain::InputSpec& spec : specs) {
    if (fill != Fill::Range && spec.values.empty()) {
      out.push_back(make_tensor(constant_bytes(spec.type, fill == Fill::Ones), spec.type));
    } else {
      out.push_back(make_tensor(std::move((*drawn)[next++].data), spec.type));
    }
  }
  return out;
}

bool any_empty(const json& values) {
  return std::any_of(values.begin(), values.end(), [](const json& value) {
    const json& dims = value.at("dims");
    return std::find(dims.begin(), dims.end(), 0) != dims.end();
  });
}

/// Zeros come first, since they suit most index inputs, but where a shape depends on values
/// (NonZero) they make empty ones, with which nothing that follows would be tested: then another
/// fill's answer is taken where it has none.
json shapes(Runtime& runtime, const ShapesRequest& request) {
  SessionRequest plain;
  plain.model = request.model;
  plain.optimize = false;
  Ort::Session session = in_step("import", [&] {
    Ort::SessionOptions options = session_options(runtime, plain);
    if (request.values.empty()) return open_session(runtime, plain, options);
    auto bytes = base::read_file(request.model);
    if (!bytes) throw Failure{"import", bytes.error().text()};
    add_outputs(*bytes, request.values);
    // Read from memory, the model needs to be told where its external data lies.
    const std::string folder = std::filesystem::path(request.model).parent_path().string();
    options.AddConfigEntry("session.model_external_initializers_file_folder_path", folder.c_str());
    return Ort::Session(runtime.environment(), bytes->data(), bytes->size(), options);
  });
  const std::vector<Declared> wanted = declared_inputs(session);
  const std::vector<Declared> declared = declared_outputs(session);
  const std::vector<domain::InputSpec> specs = input_specs(wanted, request.inputs);
  std::optional<Failure> first;
  std::optional<json> empty;
  for (const Fill fill : {Fill::Zeros, Fill::Ones, Fill::Range}) {
    try {
      json answer = in_step("run", [&] {
        const std::vector<Ort::Value> outputs =
            run(session, wanted, declared, filled_inputs(specs, fill));
        json values = json::array();
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          const TensorType type = type_of(outputs[i]);
          if (type.dtype == DType::Undefined) continue;
          values.push_back({{"name", declared[i].name},
                            {"dtype", static_cast<int>(type.dtype)},
                            {"dims", type.dims}});
        }
        return json{{"ok", true}, {"filled_with", fill_name(fill)}, {"values", values}};
      });
      if (!any_empty(answer.at("values"))) return answer;
      if (!empty) empty = std::move(answer);
    } catch (const Failure& failure) {
      if (!first) first = failure;
    }
  }
  if (empty) return *empty;
  throw Failure(*first);
}

}  // namespace

std::string Operations::answer(const std::string& text) {
  try {
    const auto request = parse_request(text);
    if (!request) return failed("request", request.error().text());
    struct Visitor {
      Runtime& runtime;
      json operator()(const DescribeRequest&) const { return describe(runtime); }
      json operator()(const RunRequest& r) const { return run_once(runtime, r); }
      json operator()(const TimeRequest& r) const { return time_runs(runtime, r); }
      json operator()(const CompileRequest& r) const { return compile(runtime, r); }
      json operator()(const ShapesRequest& r) const { return shapes(runtime, r); }
    };
    return std::visit(Visitor{runtime_}, *request)
        .dump(-1, ' ', false, json::error_handler_t::replace);
  } catch (const Failure& failure) {
    return failed(failure.where, failure.text);
  } catch (const Ort::Exception& error) {
    return failed("run", error.what());
  } catch (const std::bad_alloc&) {
    throw;  // memory is short for the whole process: it ends, and the worker starts another
  } catch (const std::exception& error) {
    return failed("run", error.what());
  }
}

}  // namespace layerfarm::worker::ort
