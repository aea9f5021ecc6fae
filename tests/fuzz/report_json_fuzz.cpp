// Report files come from users and other tools: any bytes are read, shown, edited and folded
// without a crash, and what is written reads back as the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "coordinator/report/compiler_map.h"
#include "coordinator/report/edit.h"
#include "coordinator/report/report_state.h"
#include "coordinator/report/view_text.h"

using namespace layerfarm::coordinator::report;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto value = json::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!value) return 0;
  const std::string text = json::text_of(*value);
  const auto again = json::parse(text, "again");
  if (!again || json::text_of(*again) != text) std::abort();

  [[maybe_unused]] const std::string python = json::python_text(*value);
  [[maybe_unused]] const std::string summary = view_summary(*value, Colour::Yes);
  [[maybe_unused]] const std::string compiler = view_compiler(*value);
  for (const Op& op : ops_of(*value)) {
    if (!view_layer(*value, op.id)) std::abort();
  }
  [[maybe_unused]] const CompilerMap map = compiler_map(*value);

  ReportPlan plan;
  plan.model_name = "m";
  plan.chip.executors = {{.name = "htp"}, {.name = "host"}};
  LayerFacts facts;
  facts.id = "Conv_0";
  plan.layers = {facts};
  ReportState state(plan);
  state.take_over(*value);
  state.settle(0, 1, CaseResult{});
  const Texts texts = state.texts(Phase::Finished);
  if (!json::parse(texts.report, "report") || !json::parse(texts.compiler, "compiler"))
    std::abort();

  if (value->object())
    apply_edit(*value, select_layers(*value, "*"), {.executor = "null", .fp_max_tol = 0.5});
  return 0;
}
