#include "coordinator/app/case_log.h"

#include "coordinator/report/log_lines.h"
#include "coordinator/report/texts.h"

namespace layerfarm::coordinator::app {

void CaseLog::say(const plan::CaseSettled& settled, const report::CaseResult& result,
                  const ReportSetup& setup) {
  if (console_.silent()) return;
  const domain::ExecutorSpec& executor = setup.chip->spec.executors[settled.executor];
  report::CaseLine line;
  line.layer_id = setup.model->layers[settled.layer].id;
  line.executor = executor.name;
  line.model = setup.label;
  if (several_chips_) line.chip = setup.chip->spec.name;
  if (executor.evidence != domain::Evidence::Hardware)
    line.evidence = domain::evidence_name(executor.evidence);
  console_.say_coloured(report::case_lines(line, result, report::Colour::Yes),
                        report::case_lines(line, result, report::Colour::No));
  if (result.status == domain::Status::Difference && !result.reason.empty())
    console_.say("  " + result.reason);
  if (result.failure) {
    console_.say_detail(report::details_head(label(settled, setup), result.failure->in_setup) +
                        "\n" + result.failure->text);
  }
  console_.say(report::progress_line(progress_.done(), progress_.total()));
}

void CaseLog::say_without_result(const plan::CaseSettled& settled, const ReportSetup& setup) {
  const auto& executors = setup.chip->spec.executors;
  const std::string& executor = executors[settled.executor].name;
  const auto& layers = setup.model->layers;
  if (settled.how == plan::How::Unsettled) {
    report::CaseLine line;
    line.layer_id = layers[settled.layer].id;
    line.executor = executor;
    line.model = setup.label;
    if (several_chips_) line.chip = setup.chip->spec.name;
    console_.say(report::unsettled_lines(line, settled.reason));
  } else if (console_.verbose()) {
    console_.say_verbose(label(settled, setup) + " skipped (" +
                         plan::skip_text(settled, executor, executors[settled.skip_executor].name,
                                         layers[settled.source_layer].id) +
                         ")");
  }
}

std::string CaseLog::label(const plan::CaseSettled& settled, const ReportSetup& setup) {
  const domain::Layer& layer = setup.model->layers[settled.layer];
  return report::case_label(setup.model_name + setup.suffix, layer.op_type, layer.orig_index,
                            setup.chip->spec.executors[settled.executor].name);
}

}  // namespace layerfarm::coordinator::app
