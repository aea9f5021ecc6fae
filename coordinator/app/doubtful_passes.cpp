#include "coordinator/app/doubtful_passes.h"

#include "coordinator/report/texts.h"
#include "shared/domain/quantized_ops.h"
#include "shared/domain/verdict.h"

namespace layerfarm::coordinator::app {
namespace {

std::string share(std::uint64_t part, std::uint64_t all) {
  return std::to_string(part) + " of " + std::to_string(all);
}

}  // namespace

Doubt doubt_of(const domain::Layer& layer, const plan::CaseSettled& settled,
               const report::CaseResult& result, const domain::ToleranceEdit& edit) {
  Doubt out;
  if (result.status != domain::Status::Success || !result.numbers) return out;
  const auto& forgiven = result.numbers->forgiven;
  if (forgiven && forgiven->hides && !edit.fp_abs_tol_frac)
    out.forgiven = share(forgiven->elements, result.numbers->total);
  if (!settled.outcome || !settled.outcome->executed || edit.int_tol) return out;
  // Their integers stand for real numbers, whatever their width, so that rounding may move them.
  if (layer.quantized.value_or(false) || domain::works_on_quantized(layer.op_type)) return out;
  std::uint64_t off = 0;
  std::uint64_t all = 0;
  for (const domain::Comparison& output : settled.outcome->executed->outputs) {
    if (!domain::is_exact_integer(output.dtype)) continue;
    off += domain::off_by_one(output).value_or(0);
    all += output.total;
  }
  if (off > 0) out.off_by_one = share(off, all);
  return out;
}

void DoubtfulPasses::note(std::size_t layer, std::size_t executor, const std::string& name,
                          Doubt doubt) {
  if (doubt.forgiven.empty() && doubt.off_by_one.empty()) {
    found_.erase({layer, executor});
    return;
  }
  found_[{layer, executor}] = {name, std::move(doubt)};
}

std::vector<std::string> DoubtfulPasses::lines(const std::string& line_start) const {
  std::vector<std::string> forgiven;
  std::vector<std::string> off_by_one;
  for (const auto& [place, one] : found_) {
    if (!one.doubt.forgiven.empty()) forgiven.push_back(one.name + " (" + one.doubt.forgiven + ")");
    if (!one.doubt.off_by_one.empty())
      off_by_one.push_back(one.name + " (" + one.doubt.off_by_one + ")");
  }
  std::vector<std::string> out;
  const auto add = [&](const std::vector<std::string>& of, const std::string& what) {
    if (of.empty()) return;
    out.push_back("[Tolerance] " + line_start + std::to_string(of.size()) + what +
                  " (docs/tolerances.md): " + report::first_ten(of));
  };
  add(forgiven,
      " result(s) are a success only because the greatest element of an output excuses the small "
      "ones, which may all be wrong; `edit --layer ID --tolerance-abs-frac 0` judges each by "
      "itself");
  add(off_by_one,
      " result(s) are a success with integers off by one that are no quantized values, so an index "
      "or a mask is wrong; `edit --layer ID --tolerance-int 0` makes that a difference");
  return out;
}

}  // namespace layerfarm::coordinator::app
