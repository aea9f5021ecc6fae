#include "worker/ort/request.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace layerfarm::worker::ort {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::json;

/// Thrown inside this file only, caught in parse_request.
struct Wrong {
  std::string reason;
};

const json* find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text_at(const json& object, const char* key, const char* missing = nullptr) {
  const json* value = find(object, key);
  if (value == nullptr && missing != nullptr) return missing;
  if (value == nullptr || !value->is_string())
    throw Wrong{std::string("'") + key + "' is not a text"};
  std::string text = value->get<std::string>();
  // A NUL would cut a path short on its way through C.
  if (text.find('\0') != std::string::npos) throw Wrong{std::string("'") + key + "' holds a NUL"};
  return text;
}

std::string path_at(const json& object, const char* key) {
  std::string path = text_at(object, key);
  if (path.empty() || path.front() != '/')
    throw Wrong{std::string("'") + key + "' is not an absolute path"};
  return path;
}

std::int64_t number_at(const json& object, const char* key, std::int64_t missing,
                       std::int64_t least, std::int64_t most) {
  const json* value = find(object, key);
  if (value == nullptr) return missing;
  const bool whole = value->is_number_integer() &&
                     !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX);
  if (!whole || value->get<std::int64_t>() < least || value->get<std::int64_t>() > most) {
    throw Wrong{std::string("'") + key + "' is not a whole number in [" + std::to_string(least) +
                ", " + std::to_string(most) + "]"};
  }
  return value->get<std::int64_t>();
}

bool flag_at(const json& object, const char* key, bool missing) {
  const json* value = find(object, key);
  if (value == nullptr) return missing;
  if (!value->is_boolean()) throw Wrong{std::string("'") + key + "' is not true or false"};
  return value->get<bool>();
}

double real_at(const json& object, const char* key, double missing) {
  const json* value = find(object, key);
  if (value == nullptr) return missing;
  if (!value->is_number()) throw Wrong{std::string("'") + key + "' is not a number"};
  return value->get<double>();
}

std::map<std::string, std::string> texts_at(const json& object, const char* key) {
  std::map<std::string, std::string> out;
  const json* value = find(object, key);
  if (value == nullptr) return out;
  if (!value->is_object()) throw Wrong{std::string("'") + key + "' is not an object"};
  for (const auto& [name, _] : value->items()) out.emplace(name, text_at(*value, name.c_str()));
  return out;
}

const json& list_at(const json& object, const char* key) {
  static const json empty = json::array();
  const json* value = find(object, key);
  if (value == nullptr) return empty;
  if (!value->is_array()) throw Wrong{std::string("'") + key + "' is not a list"};
  for (const json& element : *value) {
    if (!element.is_object() && !element.is_string())
      throw Wrong{std::string("'") + key + "' holds something else than objects or texts"};
  }
  return *value;
}

/// The key may be missing: an empty list.
std::vector<double> numbers_at(const json& object, const char* key) {
  std::vector<double> out;
  const json* value = find(object, key);
  if (value == nullptr) return out;
  if (!value->is_array()) throw Wrong{std::string("'") + key + "' is not a list"};
  for (const json& element : *value) {
    if (!element.is_number())
      throw Wrong{std::string("'") + key + "' holds something else than numbers"};
    out.push_back(element.get<double>());
  }
  return out;
}

domain::TensorType type_of(const json& object) {
  domain::TensorType type;
  type.dtype = static_cast<domain::DType>(number_at(object, "dtype", 0, 1, 1000));
  const json* dims = find(object, "dims");
  if (dims == nullptr || !dims->is_array()) throw Wrong{"'dims' is not a list"};
  if (dims->size() > 64) throw Wrong{"'dims' has more than 64 entries"};
  for (const json& dim : *dims)
    type.dims.push_back(number_at(json{{"dims", dim}}, "dims", -1, 0, INT64_MAX));
  return type;
}

SessionRequest session_of(const json& object) {
  SessionRequest session;
  session.model = path_at(object, "model");
  session.optimize = flag_at(object, "optimize", true);
  session.threads = static_cast<int>(number_at(object, "threads", 0, 0, 4096));
  session.config = texts_at(object, "session");
  session.no_fallback = flag_at(object, "no_fallback", true);
  if (const json* provider = find(object, "provider"); provider != nullptr) {
    if (!provider->is_object()) throw Wrong{"'provider' is not an object"};
    session.provider = Provider{path_at(*provider, "library"), text_at(*provider, "name"),
                                text_at(*provider, "device", ""), texts_at(*provider, "options")};
  }
  return session;
}

std::vector<TensorFile> inputs_of(const json& object) {
  std::vector<TensorFile> out;
  for (const json& input : list_at(object, "inputs"))
    out.push_back({path_at(input, "file"), type_of(input)});
  return out;
}

ShapesRequest shapes_of(const json& object) {
  ShapesRequest request;
  request.model = path_at(object, "model");
  for (const json& value : list_at(object, "values")) {
    if (!value.is_string()) throw Wrong{"'values' holds something else than texts"};
    request.values.push_back(value.get<std::string>());
  }
  for (const json& input : list_at(object, "inputs")) {
    NamedInput named{text_at(input, "name"), {}};
    named.spec.type = type_of(input);
    named.spec.lo = real_at(input, "lo", named.spec.lo);
    named.spec.hi = real_at(input, "hi", named.spec.hi);
    named.spec.values = numbers_at(input, "values");
    request.inputs.push_back(std::move(named));
  }
  return request;
}

Request request_of(const json& object) {
  if (!object.is_object()) throw Wrong{"it is not an object"};
  const std::string op = text_at(object, "op");
  if (op == "describe") return DescribeRequest{};
  if (op == "run") {
    return RunRequest{
        session_of(object), inputs_of(object), path_at(object, "output_folder"),
        static_cast<std::uint64_t>(number_at(object, "output_limit", 0, 0, INT64_MAX))};
  }
  if (op == "time") {
    return TimeRequest{session_of(object), inputs_of(object),
                       static_cast<int>(number_at(object, "warm_up", 1, 0, 1000000)),
                       static_cast<int>(number_at(object, "runs", 1, 1, 1000000))};
  }
  if (op == "compile") return CompileRequest{session_of(object), path_at(object, "output")};
  if (op == "shapes") return shapes_of(object);
  throw Wrong{"there is no operation '" + op + "'"};
}

}  // namespace

Result<Request> parse_request(const std::string& text) {
  try {
    return request_of(json::parse(text));
  } catch (const Wrong& wrong) {
    return fail(ErrorCode::InvalidInput, "request: " + wrong.reason);
  } catch (const json::exception& error) {
    return fail(ErrorCode::InvalidInput, std::string("request: ") + error.what());
  }
}

}  // namespace layerfarm::worker::ort
