#include "coordinator/app/config_files.h"

#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "coordinator/app/slips.h"
#include "coordinator/app/tool_options.h"
#include "shared/base/files.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using nlohmann::json;

constexpr const char* kSection = "gen_config";

/// Keys of the original that are not called as our flags are.
const std::map<std::string, std::string>& top_keys() {
  static const std::map<std::string, std::string> kKeys = {
      {"model_path", "--model"},
      {"work_dir", "--output-dir"},
      {"chip", "--torq-hw"},
      {"runtime_hw_type", "--torq-hw-type"},
      {"compiler_options", "--compiler-option"},
      {"runtime_options", "--runtime-option"},
      {"dump_ir", "--debug-ir"},
  };
  return kKeys;
}
const std::map<std::string, std::string>& other_field_names() {
  static const std::map<std::string, std::string> kKeys = {
      {"model_path", "--model"},
      {"runtime_hw_type", "--torq-hw-type"},
      {"compiler_options", "--compiler-option"},
      {"runtime_options", "--runtime-option"},
      {"compiler_timeout", "--compile-timeout"},
      {"runtime_timeout", "--run-timeout"},
  };
  return kKeys;
}

/// Keys that the original's own tools write into such files. Empty they ask for nothing; with a
/// value they ask for what is not there.
constexpr const char* kNotSupported[] = {"function",        "dump_phases", "profile_compile",
                                         "profile_runtime", "input_npy",   "expected_output_npy",
                                         "spec_source",     "vmfb_path",   "compile_tool",
                                         "run_tool",        "input_seed",  "input_ranges"};
constexpr const char* kNotSupportedFields[] = {
    "model_dir",   "model_filter", "debug_torq_compiler", "ignore_binary_mtime",
    "debug_cache", "torq_addr",    "torq_private_key"};
/// These change nothing: inputs are drawn at random in any case, and a port needs an address.
constexpr const char* kIgnored[] = {"random_inputs", "torq_port"};

template <std::size_t N>
bool is_one_of(const std::string& key, const char* const (&keys)[N]) {
  return std::any_of(std::begin(keys), std::end(keys),
                     [&key](const char* one) { return key == one; });
}

bool asks_nothing(const json& value) {
  if (value.is_object()) return std::all_of(value.begin(), value.end(), asks_nothing);
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_array() && value.empty());
}

/// A value, where it came from, and how the key is called in errors.
struct Setting {
  json value;
  std::string file;
  std::string key;
};

base::Error wrong(const Setting& setting, const std::string& why) {
  return {ErrorCode::InvalidInput,
          "config file " + setting.file + ": key '" + setting.key + "': " + why};
}

/// Keys of one level, each with the file that had the last word.
using Level = std::map<std::string, Setting>;

void merge(json& into, const json& from) {
  if (!into.is_object() || !from.is_object()) {
    into = from;
    return;
  }
  for (const auto& [key, value] : from.items()) merge(into[key], value);
}

void merge(Level& into, const json& from, const std::string& file, const std::string& prefix) {
  for (const auto& [key, value] : from.items()) {
    Setting& setting = into[key];
    merge(setting.value, value);
    setting.file = file;
    setting.key = prefix + key;
  }
}

struct Merged {
  Level top;
  Level fields;  ///< of the section gen_config
};

Result<void> add_file(Merged& merged, const std::string& path) {
  const auto text = base::read_file(path);
  if (!text) return fail(text.error());
  json document;
  try {
    document = json::parse(*text);
  } catch (const json::exception& error) {
    const std::string said = error.what();
    const auto at = said.find("] ");
    return fail(ErrorCode::InvalidInput,
                "config file " + path +
                    ": not JSON: " + (at == std::string::npos ? said : said.substr(at + 2)));
  }
  // A run's manifest holds more than its config.
  if (document.is_object() && document.contains("config")) document = json(document["config"]);
  if (!document.is_object())
    return fail(ErrorCode::InvalidInput, "config file " + path + ": must hold a JSON object");
  if (const auto section = document.find(kSection); section != document.end()) {
    if (!section->is_object() && !section->is_null()) {
      return fail(ErrorCode::InvalidInput,
                  "config file " + path + ": key 'gen_config': must be an object");
    }
    if (section->is_object()) merge(merged.fields, *section, path, std::string(kSection) + ".");
    document.erase(section);
  }
  merge(merged.top, document, path, "");
  return {};
}

std::optional<std::string> text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

/// Words for one flag, as the command line would have given them; empty = the file asks for
/// nothing.
Result<std::vector<std::string>> words_of(const CLI::Option& option, const Setting& setting) {
  const json& value = setting.value;
  const bool is_flag = option.get_expected_max() == 0;
  const bool may_stand_alone = option.get_expected_min() == 0;
  if (value.is_null()) return {};
  if (value.is_boolean() && may_stand_alone) {
    if (is_flag) return std::vector<std::string>{value.get<bool>() ? "true" : "false"};
    if (!value.get<bool>()) return {};
    return std::vector<std::string>{option.get_default_str()};
  }
  if (is_flag) return fail(wrong(setting, "must be true or false"));
  if (const auto text = text_of(value)) return std::vector<std::string>{*text};
  if (!value.is_array()) return fail(wrong(setting, "must be a text, a number or a list of them"));
  std::vector<std::string> out;
  for (const json& element : value) {
    const auto text = text_of(element);
    if (!text) return fail(wrong(setting, "must be a list of texts or numbers"));
    out.push_back(*text);
  }
  if (out.size() > 1 && option.get_items_expected_max() < 2)
    return fail(wrong(setting, "takes one value"));
  return out;
}

Result<void> give(CLI::Option& option, const std::vector<std::string>& words,
                  const Setting& setting) {
  try {
    for (const std::string& word : words) option.add_result(word);
    option.run_callback();
  } catch (const CLI::Error& error) {
    return fail(wrong(setting, error.what()));
  }
  return {};
}

/// What the file says must be possible though the command line says otherwise: the mistake would
/// show with the first command that does not. The option takes it, and then its own words again.
Result<void> check(CLI::Option& option, const std::vector<std::string>& words,
                   const Setting& setting) {
  const std::vector<std::string> given = option.results();
  option.clear();
  auto fine = give(option, words, setting);
  option.clear();
  for (const std::string& word : given) option.add_result(word);
  option.run_callback();
  return fine;
}

/// Flags of the command by their names in files.
template <class App>
auto flags_by_key(App& command) {
  std::map<std::string, decltype(command.get_option_no_throw(""))> out;
  for (auto* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help" && name != "config") out.emplace(config_key_of(name), option);
    }
  }
  return out;
}

class Application {
 public:
  Application(CLI::App& command, const std::vector<const CLI::App*>& others)
      : command_(command), others_(others), flags_(flags_by_key(command)) {}

  Result<void> apply(const Merged& merged) {
    for (const auto& [key, setting] : merged.top) {
      if (auto done = apply_top(key, setting); !done) return done;
    }
    for (const auto& [key, setting] : merged.fields) {
      if (auto done = apply_field(key, setting); !done) return done;
    }
    for (const auto& [name, wanted] : wanted_) {
      if (wanted.option->count() > 0) {  // given on the command line
        if (auto done = check(*wanted.option, wanted.words, wanted.setting); !done) return done;
        continue;
      }
      if (auto done = give(*wanted.option, wanted.words, wanted.setting); !done) return done;
    }
    return add_buffers();
  }

 private:
  struct Wanted {
    CLI::Option* option = nullptr;
    std::vector<std::string> words;
    Setting setting;
  };

  Result<void> want(const std::string& flag, const Setting& setting) {
    CLI::Option* option = command_.get_option_no_throw(flag);
    if (option == nullptr && is_for_another(config_key_of(flag))) return {};
    if (option == nullptr)
      return fail(wrong(setting, "`" + command_.get_name() + "` has no flag " + flag));
    auto words = words_of(*option, setting);
    if (!words) return fail(words.error());
    if (!words->empty()) wanted_[option->get_name()] = {option, std::move(*words), setting};
    return {};
  }

  Result<void> apply_top(const std::string& key, const Setting& setting) {
    if (const auto known = top_keys().find(key); known != top_keys().end())
      return want(known->second, setting);
    if (key == "timeout") {
      for (const char* flag : {"--compile-timeout", "--run-timeout"}) {
        if (auto done = want(flag, setting); !done) return done;
      }
      return {};
    }
    // "all" is what the original does without the key.
    if (key == "convert_io_dtypes") {
      if (asks_nothing(setting.value) || setting.value == json::array({"all"})) return {};
      return fail(wrong(setting,
                        "not supported; --auto-convert-bf16 and --auto-convert-int32 convert the "
                        "model"));
    }
    if (key == "remote") {
      if (asks_nothing(setting.value)) return {};
      return fail(wrong(setting, "not supported: no board is reached from here"));
    }
    if (is_one_of(key, kIgnored)) return {};
    if (is_one_of(key, kNotSupported)) return not_supported(setting);
    std::vector<std::string> names = {"timeout", "convert_io_dtypes", "remote", kSection};
    for (const auto& [name, flag] : top_keys()) names.push_back(name);
    auto refused = unknown(setting, key, names);
    if (flags_.contains(key))
      refused.error().message += "; it belongs into the section " + std::string(kSection);
    return refused;
  }

  Result<void> apply_field(const std::string& key, const Setting& setting) {
    if (const auto flag = flags_.find(key); flag != flags_.end())
      return want("--" + flag->second->get_lnames().front(), setting);
    if (const auto other = other_field_names().find(key); other != other_field_names().end())
      return want(other->second, setting);
    if (key == "trace_buffers") {
      if (!setting.value.is_boolean() && !setting.value.is_null())
        return fail(wrong(setting, "must be true or false"));
      if (setting.value == true) buffers_ = setting;
      return {};
    }
    if (key == "cache_dir") {
      if (setting.value.is_null()) return {};
      if (!setting.value.is_string() || setting.value == "")
        return fail(wrong(setting, "must be the path of a folder"));
      // Workers and their tools look there too, so it is the variable that says where.
      ::setenv("LAYERFARM_CACHE_DIR", setting.value.get<std::string>().c_str(), 1);
      return {};
    }
    if (key == "convert_io_dtypes") return apply_top(key, setting);
    if (is_one_of(key, kIgnored)) return {};
    if (is_one_of(key, kNotSupportedFields)) return not_supported(setting);
    if (is_for_another(key)) return {};
    std::vector<std::string> names;
    for (const auto& [name, option] : flags_) names.push_back(name);
    return unknown(setting, key, names);
  }

  /// The same file may be given to discover and then to run.
  [[nodiscard]] bool is_for_another(const std::string& key) const {
    return std::any_of(others_.begin(), others_.end(), [&key](const CLI::App* other) {
      return flags_by_key(*other).contains(key);
    });
  }

  static Result<void> not_supported(const Setting& setting) {
    if (asks_nothing(setting.value)) return {};
    return fail(wrong(setting, "not supported; remove it"));
  }

  static Result<void> unknown(const Setting& setting, const std::string& key,
                              const std::vector<std::string>& known) {
    return fail(ErrorCode::InvalidInput, "config file " + setting.file + ": unknown key '" +
                                             setting.key + "' (known: " + base::join(known) + ")" +
                                             meant_text(key, known));
  }

  /// Not an option of the user's, so it does not make room for those of the command line.
  Result<void> add_buffers() {
    if (!buffers_) return {};
    CLI::Option* option = command_.get_option_no_throw("--compiler-option");
    if (option == nullptr) return {};
    return give(*option, {kBufferOption}, *buffers_);
  }

  CLI::App& command_;
  const std::vector<const CLI::App*>& others_;
  std::map<std::string, CLI::Option*> flags_;
  std::map<std::string, Wanted> wanted_;  ///< by flag
  std::optional<Setting> buffers_;
};

}  // namespace

std::string config_key_of(const std::string& flag) {
  std::string out = flag.substr(std::min(flag.size(), flag.find_first_not_of('-')));
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

Result<void> apply_config_files(CLI::App& command, const std::vector<std::string>& files,
                                const std::vector<const CLI::App*>& others) {
  if (files.empty()) return {};
  Merged merged;
  for (const std::string& file : files) {
    if (auto added = add_file(merged, file); !added) return added;
  }
  return Application(command, others).apply(merged);
}

}  // namespace layerfarm::coordinator::app
