#include "coordinator/app/result_list.h"

#include "coordinator/report/json.h"

namespace layerfarm::coordinator::app {
namespace json = report::json;

std::string result_list(const std::vector<OpenReport>& reports) {
  json::Array out;
  for (const OpenReport& report : reports) {
    for (const report::Op& op : report.state->ops()) {
      for (const report::OpResult& result : op.results) {
        json::Object item;
        item.set("model", report.setup.model_name);
        item.set("chip", report.setup.chip->spec.name);
        item.set("layer", op.id);
        item.set("executor", result.executor);
        item.set("status", result.status);
        item.set("recommended", op.recommended && *op.recommended == result.executor);
        if (op.location) item.set("mlir_location", *op.location);
        if (result.runtime_ms) item.set("runtime_ms", *result.runtime_ms);
        if (!result.failure_report.is_null()) item.set("failure_report", result.failure_report);
        out.emplace_back(std::move(item));
      }
    }
  }
  return json::text_of(out);
}

}  // namespace layerfarm::coordinator::app
