#include "coordinator/report/compiler_map.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "coordinator/report/ops.h"

namespace layerfarm::coordinator::report {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_line_and_column(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && is_digits(text.substr(0, colon)) &&
         is_digits(text.substr(colon + 1));
}

bool is_compiler_file(const json::Value& file) {
  return file.get("op_assignments") != nullptr && file.get("ops") == nullptr;
}

CompilerMap compiler_map(std::span<const Assignment> ops,
                         const std::optional<std::string>& model_name) {
  CompilerMap map;
  const auto has_place = [](const Assignment& op) {
    return op.in_model && is_line_and_column(op.location);
  };
  std::unordered_map<std::string_view, std::uint32_t> users;
  users.reserve(ops.size());
  for (const Assignment& op : ops) {
    if (has_place(op)) ++users[op.location];
  }
  std::unordered_map<std::string_view, std::string> shared;  // ids of those at one location
  for (const Assignment& op : ops) {
    if (!has_place(op) || users[op.location] == 1) continue;
    std::string& ids = shared[op.location];
    ids.append(ids.empty() ? "" : ", ").append(op.layer_id);
  }
  json::Builder out(map.text, 0);
  out.open();
  out.open("op_assignments");
  for (const Assignment& op : ops) {
    if (!has_place(op)) continue;
    if (const std::uint32_t count = users[op.location]; count > 1) {
      const auto ids = shared.extract(op.location);
      if (ids.empty()) continue;  // said already
      map.warnings.push_back("location " + std::string(op.location) + " belongs to " +
                             std::to_string(count) + " layers (" + ids.mapped() +
                             "): none of them is in the compiler file");
      continue;
    }
    if (!op.executor || op.executor->empty()) continue;
    out.open(op.location);
    out.text("executor", *op.executor);
    out.close();
    ++map.assignments;
  }
  out.close();
  if (model_name) out.text("model_name", *model_name);
  out.close();
  return map;
}

CompilerMap compiler_map(const json::Value& report) {
  std::vector<Assignment> assignments;
  const json::Value* ops = report.get("ops");
  if (ops && ops->object()) {
    assignments.reserve(ops->object()->size());
    for (const json::Member& entry : *ops->object()) {
      Assignment assignment{entry.key, entry.value.get_text("mlir_location"), std::nullopt, true};
      // Views into the report: recommendation_in() would give a copy.
      if (recommendation_in(entry.value))
        assignment.executor = entry.value.get_text("recommended_executor");
      const json::Value* gone = entry.value.get("_not_in_model");
      assignment.in_model = !(gone && gone->flag() == true);
      assignments.push_back(assignment);
    }
  }
  const json::Value* name = report.get("model_name");
  return compiler_map(assignments,
                      name && name->text() ? std::optional(*name->text()) : std::nullopt);
}

std::string mac_sidecar(std::vector<LayerMacs> layers, const std::string& model_name) {
  std::sort(layers.begin(), layers.end(),
            [](const LayerMacs& a, const LayerMacs& b) { return a.layer_id < b.layer_id; });
  std::string text;
  json::Builder out(text, 0);
  out.open();
  out.open("ops");
  for (const LayerMacs& layer : layers) {
    out.open(layer.layer_id);
    out.integer("mac_count", layer.mac_count);
    auto breakdown = json::parse(layer.breakdown, "mac_breakdown");
    const bool usable = breakdown && breakdown->array();
    out.value("mac_breakdown", usable ? *breakdown : json::Value(json::Array{}));
    out.close();
  }
  out.close();
  out.text("model_name", model_name);
  out.close();
  return text;
}

}  // namespace layerfarm::coordinator::report
