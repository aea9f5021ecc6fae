#include "coordinator/app/stored_report.h"

#include <memory>
#include <utility>

#include "coordinator/plan/plan_request.h"
#include "coordinator/report/report_files.h"
#include "shared/base/blob_folder.h"
#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
namespace json = report::json;
using base::ErrorCode;
using base::fail;
using base::Result;

store::RunFile run_file_of(const ReportSetup& setup, const fs::path& model,
                           const base::Digest& analysis) {
  store::RunFile out;
  out.report_path = setup.paths.report.string();
  out.compiler_path = setup.paths.compiler.string();
  out.model_path = model.string();
  out.analysis = analysis;
  out.chip_json = domain::chip_json(setup.chip->spec);
  plan::PlanRequest request;
  request.inputs = setup.inputs;
  request.reference = setup.reference_tool;
  request.options = setup.options;
  json::Object plan;
  plan.set("request", plan::request_json(request, *setup.chip));
  plan.set("settings", setup.settings);
  plan.set("by_timing", setup.rule == report::Rule::Timing);
  out.plan = json::text_of(std::move(plan));
  return out;
}

Result<ReportSetup> setup_of(const store::RunFile& file, const fs::path& cache) {
  auto bytes = base::BlobFolder(cache / "blobs").get(file.analysis);
  if (!bytes) return fail(bytes.error());
  auto model = protocol::decode_analysis(*bytes);
  if (!model) return fail(model.error());
  auto spec = domain::parse_chip(file.chip_json, file.report_path);
  if (!spec) return fail(spec.error());
  auto plan = json::parse(file.plan, file.report_path);
  if (!plan) return fail(plan.error());
  auto request = plan::request_from_json(std::string(plan->get_text("request")));
  if (!request) return fail(request.error());

  auto chip = std::make_shared<plan::PlanChip>(std::move(request->chip));
  chip->spec = std::move(*spec);
  ReportSetup out;
  out.model_name = report::model_name_of(file.model_path);
  out.model = std::make_shared<const domain::ModelAnalysis>(std::move(*model));
  out.suffix = report::subgraph_suffix(out.model->subgraph);
  out.paths =
      report::report_paths(fs::path(file.report_path).parent_path(), out.model_name, out.suffix);
  if (const json::Value* settings = plan->get("settings")) out.settings = *settings;
  out.reference = reference_name(request->reference);
  out.tools = {{chip->spec.toolchain, chip->tool.version}};
  if (const json::Value* timing = plan->get("by_timing");
      timing != nullptr && timing->flag().value_or(false))
    out.rule = report::Rule::Timing;
  out.chip = std::move(chip);
  out.options = std::move(request->options);
  out.inputs = request->inputs;
  out.reference_tool = request->reference;
  return out;
}

}  // namespace layerfarm::coordinator::app
