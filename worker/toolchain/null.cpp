// null: says success at once and starts nothing, so that a run measures everything around the tools
// (scripts/bench).
#include "worker/toolchain/tool_results.h"
#include "worker/toolchain/toolchain.h"

namespace layerfarm::worker::toolchain {
namespace {

class NullToolchain final : public Toolchain {
 public:
  [[nodiscard]] std::string_view name() const override { return "null"; }
  [[nodiscard]] Needs needs(const domain::ChipSpec& /*chip*/) const override {
    return {.prepare = false, .compile = false, .batch = 1, .tiny = true};
  }
  [[nodiscard]] Probe probe(const domain::ChipSpec& /*chip*/) const override {
    return {.found = true,
            .identity = {.version = "1", .files = {}, .cpu = ""},
            .missing = {},
            .how_to_get = {}};
  }
  std::vector<domain::Outcome> compile(const domain::ChipSpec& /*chip*/,
                                       const domain::ExecutorSpec& /*executor*/,
                                       std::span<const CompileJob> jobs,
                                       StepContext& /*context*/) override {
    return nothing_to_compile(jobs.size());
  }
  RunResult run(const domain::ChipSpec& /*chip*/, const domain::ExecutorSpec& /*executor*/,
                const RunJob& /*job*/, StepContext& /*context*/) override {
    RunResult out;
    out.ending = domain::Ending::Done;
    return out;
  }
  TimeResult time(const domain::ChipSpec& /*chip*/, const domain::ExecutorSpec& /*executor*/,
                  const RunJob& /*job*/, int runs, StepContext& /*context*/) override {
    TimeResult out;
    out.ending = domain::Ending::Done;
    out.runs_us.assign(static_cast<std::size_t>(runs), 0);
    out.what = "nothing";
    return out;
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_null_toolchain() { return std::make_unique<NullToolchain>(); }

}  // namespace layerfarm::worker::toolchain
