#include "shared/domain/chip.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "shared/domain/chip_schema.h"

namespace layerfarm::domain {
namespace {

using base::ErrorCode;
using base::fail;
using nlohmann::json;

constexpr std::string_view kEvidenceNames[] = {"hardware", "emulator", "stand-in"};

/// The schema, parsed once per process.
struct Schema {
  json document = json::parse(kChipSchema);
  valijson::Schema rules;
  Schema() {
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(document),
                                            rules);
  }
};
const Schema& schema() {
  static const Schema* const parsed = new Schema;  // lives as long as the process
  return *parsed;
}

/// One step from a rule of the schema (or a value of the document) to what it says about a member
/// or an element.
json rule_below(const json& rule, const std::string& step, bool element) {
  if (element) return rule.value("items", json::object());
  if (const auto properties = rule.find("properties");
      properties != rule.end() && properties->contains(step))
    return properties->at(step);
  const auto rest = rule.find("additionalProperties");
  return rest != rule.end() && rest->is_object() ? *rest : json::object();
}

/// A place in the document, the value there, and the schema's rule for it.
struct Place {
  std::string key;
  json value;
  json rule;
};

Place find_place(const json& document, const std::vector<std::string>& context) {
  Place out{"", document, schema().document};
  for (const std::string& part : context) {
    if (part.size() < 3 || part.front() != '[') continue;  // "<root>"
    const std::string step = part.substr(1, part.size() - 2);
    const bool element = out.value.is_array();
    out.key += element ? part : (out.key.empty() ? "" : ".") + step;
    if (element) {
      out.value = json(out.value.at(std::stoul(step)));
    } else {
      out.value = json(out.value.value(step, json()));
    }
    out.rule = rule_below(out.rule, step, element);
    if (const auto reference = out.rule.find("$ref"); reference != out.rule.end()) {
      out.rule =
          json(schema().document.at(json::json_pointer(reference->get<std::string>().substr(1))));
    }
    if (const auto choices = out.rule.find("anyOf"); choices != out.rule.end()) {
      for (const json& choice : json(*choices)) {
        if (out.value.type_name() == choice.value("type", "")) out.rule = choice;
      }
    }
  }
  return out;
}

/// What the rule asks for, in words; the validator's own texts name constraints, not what to write
/// instead.
std::string wanted(const json& rule) {
  if (rule.contains("enum")) {
    std::string words;
    for (const json& word : rule.at("enum"))
      words += (words.empty() ? "" : ", ") + word.get<std::string>();
    return "must be one of " + words;
  }
  if (rule.contains("anyOf")) return "must be a string or a list of strings";
  const std::string type = rule.value("type", "");
  if (type == "string" && rule.contains("minLength")) return "must be a string that is not empty";
  if (type == "string" && rule.contains("pattern"))
    return "must be a string of the form " + rule.at("pattern").dump();
  if (type == "string") return "must be a string";
  if (type == "boolean") return "must be true or false";
  if (type == "array" && rule.contains("minItems"))
    return "must be a list with at least one element";
  if (type == "array") return "must be a list";
  if (type == "object") return "must be an object";
  const std::string number = type == "integer" ? "must be a whole number" : "must be a number";
  if (rule.contains("minimum"))
    return number + " from " + rule.at("minimum").dump() + " to " + rule.at("maximum").dump();
  return "is not as docs/chips.md says";
}

/// Empty when the document is as the schema says. The deepest error says what is wrong; those above
/// only say that something below is.
std::string schema_problem(const json& document) {
  valijson::Validator validator;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (validator.validate(schema().rules, target, &results)) return {};
  valijson::ValidationResults::Error error;
  std::vector<std::string> deepest;
  while (results.popError(error)) {
    if (error.context.size() > deepest.size()) deepest = error.context;
  }
  const Place place = find_place(document, deepest);
  const std::string where = place.key.empty() ? "" : "key '" + place.key + "': ";
  if (place.value.is_object() && place.rule.value("type", "") == "object") {
    for (const json& name : place.rule.value("required", json::array())) {
      if (!place.value.contains(name.get<std::string>()))
        return where + "'" + name.get<std::string>() + "' is missing";
    }
    for (const auto& [name, value] : place.value.items()) {
      if (place.rule.contains("properties") && !place.rule.at("properties").contains(name)) {
        std::string known;
        for (const auto& [other, ignored] : place.rule.at("properties").items())
          known += (known.empty() ? "" : ", ") + other;
        return where + "unknown key '" + name + "' (known: " + known + ")";
      }
    }
  }
  std::string is =
      place.value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  if (is.size() > 60) is = is.substr(0, 57) + "...";
  return where + wanted(place.rule) + ", is " + is;
}

Options read_options(const json& object) {
  Options out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) {
      out[key] = value.get<std::string>();
      continue;
    }
    std::string lines;
    for (const json& line : value) lines += (lines.empty() ? "" : "\n") + line.get<std::string>();
    out[key] = lines;
  }
  return out;
}

Tolerance read_tolerance(const json& object) {
  Tolerance out;
  out.fp_avg_tol = object.value("fp_avg_tol", out.fp_avg_tol);
  out.fp_max_tol = object.value("fp_max_tol", out.fp_max_tol);
  out.fp_abs_tol_frac = object.value("fp_abs_tol_frac", out.fp_abs_tol_frac);
  return out;
}

Evidence read_evidence(const json& word) {
  return evidence_from_name(word.get<std::string>()).value_or(Evidence::Hardware);
}

json tolerance_json(const Tolerance& tolerance) {
  return {{"fp_avg_tol", tolerance.fp_avg_tol},
          {"fp_max_tol", tolerance.fp_max_tol},
          {"fp_abs_tol_frac", tolerance.fp_abs_tol_frac}};
}

ExecutorSpec read_executor(const json& object) {
  ExecutorSpec out;
  out.name = object.at("name").get<std::string>();
  out.evidence = read_evidence(object.at("evidence"));
  if (object.contains("tolerance")) out.tolerance = read_tolerance(object.at("tolerance"));
  out.same_engine = object.value("same_engine", false);
  if (object.contains("options")) out.options = read_options(object.at("options"));
  if (object.contains("by_hw_type")) {
    for (const auto& [hw_type, variant] : object.at("by_hw_type").items()) {
      HwVariant read;
      if (variant.contains("tolerance")) read.tolerance = read_tolerance(variant.at("tolerance"));
      if (variant.contains("evidence")) read.evidence = read_evidence(variant.at("evidence"));
      out.by_hw_type[hw_type] = read;
    }
  }
  return out;
}

Limits read_limits(const json& object) {
  Limits out;
  out.compile_timeout_ms = object.value("compile_timeout_ms", std::int64_t{0});
  out.run_timeout_ms = object.value("run_timeout_ms", std::int64_t{0});
  out.memory_bytes = object.value("memory_bytes", std::int64_t{0});
  out.output_bytes = object.value("output_bytes", std::int64_t{0});
  out.file_bytes = object.value("file_bytes", std::int64_t{0});
  return out;
}

/// Words that commands and reports use beside the names of executors: as a name each would read as
/// something else somewhere (`edit --executor null` takes the recommendation away).
constexpr std::string_view kReservedNames[] = {"null",
                                               "none",
                                               "unknown",
                                               "status",
                                               "success",
                                               "difference",
                                               "error",
                                               "skipped",
                                               "unsettled",
                                               "executors",
                                               "executor",
                                               "timing",
                                               "type",
                                               "summary",
                                               "report",
                                               "runs",
                                               "runtime_ms",
                                               "max_diff",
                                               "version",
                                               "ops",
                                               "model_name",
                                               "mac_count",
                                               "layer",
                                               "recommended",
                                               "mlir_location",
                                               "node_index",
                                               "recommended_executor",
                                               "tolerance",
                                               "tolerance_used",
                                               "default_tolerance",
                                               "total_layers",
                                               "status_counts",
                                               "executor_counts",
                                               "timing_summary",
                                               "error_details",
                                               "failure_report",
                                               "critical_failures",
                                               "discovery_report",
                                               "has_critical_failures",
                                               "op_assignments",
                                               "final_report_text"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Why an executor may not be called so; empty when it may.
std::string executor_name_problem(const std::string& name) {
  if (name.front() == '_')
    return "'" + name + "' begins with '_', as keys of the reports do; choose another name";
  const std::string small = lower(name);
  if (std::find(std::begin(kReservedNames), std::end(kReservedNames), small) !=
      std::end(kReservedNames))
    return "'" + name + "' is a word of the reports and commands; choose another name";
  return {};
}

/// Why a chip may not be called so; empty when it may.
std::string chip_name_problem(const std::string& name) {
  if (lower(name) == "all" || name.ends_with(".group"))
    return "'" + name + "' means several chips on the command line; choose another name";
  return {};
}

/// What must be known while reading: the library keeps the last of two equal keys without a word,
/// and the schema's patterns take stack by the character.
class FormCheck {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > 8) note("is nested too deeply");
    if (event == json::parse_event_t::object_start) seen_.emplace_back();
    if (event == json::parse_event_t::object_end) seen_.pop_back();
    if (event == json::parse_event_t::key) {
      key_ = parsed.get<std::string>();
      if (key_.find('\0') != std::string::npos)
        note("key '" + key_.substr(0, key_.find('\0')) +
             "...': holds a NUL character; remove the \\u0000");
      if (!seen_.back().insert(key_).second) note("key '" + key_ + "' is written twice");
    }
    if (event == json::parse_event_t::value && parsed.is_string() && key_ != "notes" &&
        parsed.get_ref<const std::string&>().size() > 1000) {
      note("key '" + key_ + "': a string of more than 1000 characters");
    }
    // Programs take their arguments as C strings, which end there: the rest would be lost unseen.
    if (event == json::parse_event_t::value && parsed.is_string() &&
        parsed.get_ref<const std::string&>().find('\0') != std::string::npos) {
      note("key '" + key_ +
           "': holds a NUL character, at which a command would cut it; remove the \\u0000");
    }
    return true;
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  std::vector<std::set<std::string>> seen_;
  std::string key_;
  std::string problem_;
};

}  // namespace

std::string_view evidence_name(Evidence evidence) {
  return kEvidenceNames[static_cast<std::size_t>(evidence)];
}

std::optional<Evidence> evidence_from_name(std::string_view name) {
  for (const Evidence evidence : {Evidence::Hardware, Evidence::Emulator, Evidence::StandIn}) {
    if (evidence_name(evidence) == name) return evidence;
  }
  return std::nullopt;
}

std::vector<std::string> option_list(const Options& options, const std::string& key) {
  const auto found = options.find(key);
  if (found == options.end() || found->second.empty()) return {};
  std::vector<std::string> out(1);
  for (const char c : found->second) {
    if (c == '\n') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

Options merged_options(const ChipSpec& chip, const ExecutorSpec& executor) {
  Options out = executor.options;
  out.insert(chip.options.begin(), chip.options.end());
  return out;
}

const ExecutorSpec* ChipSpec::executor(std::string_view executor_name) const {
  for (const ExecutorSpec& one : executors) {
    if (one.name == executor_name) return &one;
  }
  return nullptr;
}

ChipSpec with_hw_type(ChipSpec chip, const std::string& hw_type) {
  chip.hw_type = hw_type;
  for (ExecutorSpec& executor : chip.executors) {
    const auto found = executor.by_hw_type.find(hw_type);
    if (found == executor.by_hw_type.end()) continue;
    if (found->second.tolerance) executor.tolerance = *found->second.tolerance;
    if (found->second.evidence) executor.evidence = *found->second.evidence;
  }
  return chip;
}

base::Result<ChipSpec> parse_chip(const std::string& text, const std::string& path) {
  const auto wrong = [&path](const std::string& why) {
    return fail(ErrorCode::InvalidInput, "chip file " + path + ": " + why);
  };
  json document;
  FormCheck form;
  try {
    document = json::parse(text, std::ref(form));
  } catch (const json::exception& error) {
    const std::string said = error.what();
    const auto at = said.find("] ");
    return wrong("not JSON: " + (at == std::string::npos ? said : said.substr(at + 2)));
  }
  if (!form.problem().empty()) return wrong(form.problem());
  if (!document.is_object()) return wrong("must hold a JSON object");
  try {
    if (const std::string problem = schema_problem(document); !problem.empty())
      return wrong(problem);
    ChipSpec out;
    out.name = document.value("chip_name", std::filesystem::path(path).stem().string());
    if (const std::string problem = chip_name_problem(out.name); !problem.empty())
      return wrong("key 'chip_name' (or the file's name): " + problem);
    out.target = document.value("target", out.name);
    out.toolchain = document.at("toolchain").get<std::string>();
    if (document.contains("options")) out.options = read_options(document.at("options"));
    if (document.contains("limits")) out.limits = read_limits(document.at("limits"));
    out.notes = document.value("notes", "");
    std::set<std::string> names;
    for (const json& object : document.at("executors")) {
      out.executors.push_back(read_executor(object));
      const std::string& name = out.executors.back().name;
      const std::string key =
          "key 'executors[" + std::to_string(out.executors.size() - 1) + "].name': ";
      if (const std::string problem = executor_name_problem(name); !problem.empty())
        return wrong(key + problem);
      // Tables show names in capitals, so two that differ only there would look alike.
      if (!names.insert(lower(name)).second)
        return wrong(key + "executor '" + name + "' is there twice");
    }
    return with_hw_type(std::move(out), document.value("runtime_hw_type", ""));
  } catch (const std::exception& error) {  // a library that meets what the schema let through
    return wrong(error.what());
  }
}

std::string chip_json(const ChipSpec& chip) {
  json executors = json::array();
  for (const ExecutorSpec& executor : chip.executors) {
    json one = {{"name", executor.name},
                {"evidence", evidence_name(executor.evidence)},
                {"tolerance", tolerance_json(executor.tolerance)}};
    if (executor.same_engine) one["same_engine"] = true;
    if (!executor.options.empty()) one["options"] = executor.options;
    for (const auto& [hw_type, variant] : executor.by_hw_type) {
      json& written = one["by_hw_type"][hw_type] = json::object();
      if (variant.tolerance) written["tolerance"] = tolerance_json(*variant.tolerance);
      if (variant.evidence) written["evidence"] = evidence_name(*variant.evidence);
    }
    executors.push_back(std::move(one));
  }
  json out = {{"chip_name", chip.name},
              {"target", chip.target},
              {"toolchain", chip.toolchain},
              {"executors", std::move(executors)}};
  if (!chip.hw_type.empty()) out["runtime_hw_type"] = chip.hw_type;
  if (!chip.options.empty()) out["options"] = chip.options;
  if (!chip.notes.empty()) out["notes"] = chip.notes;
  if (!(chip.limits == Limits{})) {
    out["limits"] = {{"compile_timeout_ms", chip.limits.compile_timeout_ms},
                     {"run_timeout_ms", chip.limits.run_timeout_ms},
                     {"memory_bytes", chip.limits.memory_bytes},
                     {"output_bytes", chip.limits.output_bytes},
                     {"file_bytes", chip.limits.file_bytes}};
  }
  return out.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

}  // namespace layerfarm::domain
