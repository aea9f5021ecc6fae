// The cases of a new file.
#include <algorithm>

#include "coordinator/plan/cases.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::plan {

void Cases::add(std::uint32_t file_number) {
  state_.resize(tables_.cases(), CaseState::NotSelected);
  waits_.resize(tables_.cases(), kNone);
  link_.resize(tables_.cases(), kNone);
  counts_.emplace_back();
  const std::uint32_t layers = tables_.file(file_number).layers;
  for (std::uint32_t layer = 0; layer < layers; ++layer) open_layer(file_number, layer);
  for (std::uint32_t layer = 0; layer < layers; ++layer) start_layer(file_number, layer);
}

/// Decides what is decided without any job; the rest is left Idle or WaitingForSource.
void Cases::open_layer(std::uint32_t file_number, std::uint32_t layer) {
  const BookFile& file = tables_.file(file_number);
  const BookRequest& request = tables_.request(file.request);
  const PlanOptions& options = request.given.options;
  if (!request.selected[layer]) return;
  const domain::Layer& spec = request.given.model->layers[layer];
  const bool op_skipped =
      std::any_of(options.skip_ops.begin(), options.skip_ops.end(),
                  [&](const std::string& op) { return base::equal_any_case(op, spec.op_type); });
  const Place first = tables_.place_in(file_number, file.case_of(layer, 0));
  const auto works_in_file =
      options.skip_mode && !options.recompute ? tables_.old_success(first) : std::nullopt;
  const bool copies =
      !file.source.empty() && file.source[layer] != kNone && file.source[layer] != layer;
  bool any = false;
  for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
    const Place at = tables_.beside(first, executor);
    if (!at.chosen()) continue;
    any = true;
    ++counts_[file_number].cases;
    if (at.in_skip_list()) {
      skip(at, SkipReason::ExecutorInSkipList);
    } else if (op_skipped) {
      skip(at, SkipReason::OpInSkipList);
    } else if (works_in_file) {
      skip(at, SkipReason::AlreadyWorks, *works_in_file);
    } else {
      state_[at.id] = copies ? CaseState::WaitingForSource : CaseState::Idle;
    }
  }
  if (any) ++counts_[file_number].layers;
}

void Cases::start_layer(std::uint32_t file_number, std::uint32_t layer) {
  const BookFile& file = tables_.file(file_number);
  const BookRequest& request = tables_.request(file.request);
  const domain::Layer& spec = request.given.model->layers[layer];
  for (std::uint32_t executor = 0; executor < file.executors; ++executor) {
    const Place at = tables_.place_in(file_number, file.case_of(layer, executor));
    if (state_[at.id] == CaseState::WaitingForSource) {
      // Its source may have been skipped before this one was looked at.
      const std::uint32_t source = file.case_of(file.source[layer], executor);
      if (is_settled(state_[source]))
        copy(at, skipped_source(tables_.place_in(file_number, source)));
      continue;
    }
    if (state_[at.id] != CaseState::Idle) continue;
    if (!spec.problem.empty()) {
      settle(at, failed(at, {.outcome = made_failure(domain::Stage::Analyze, "import", "refused",
                                                     spec.problem)}));
      continue;
    }
    bool early = false;
    if (request.given.options.skip_mode) {
      for (std::uint32_t higher = 0; higher < executor; ++higher) {
        const CaseState above = state_[file.case_of(layer, higher)];
        early = early || above == CaseState::Waiting || above == CaseState::WaitingEarly ||
                above == CaseState::Held;
      }
    }
    state_[at.id] = early ? CaseState::WaitingEarly : CaseState::Waiting;
    step(at);
  }
}

/// What open_layer said of a source: skipped, and because it works in the old report (the skip
/// lists hold for copies too).
CaseSettled Cases::skipped_source(const Place& source) const {
  CaseSettled out = settled(source, How::Skipped);
  out.skip = SkipReason::AlreadyWorks;
  out.skip_executor = tables_.old_success(source).value_or(0);
  return out;
}

std::size_t Cases::memory_bytes() const {
  return state_.capacity() + (waits_.capacity() + link_.capacity()) * sizeof(std::uint32_t) +
         counts_.capacity() * sizeof(FileCounts);
}

}  // namespace layerfarm::coordinator::plan
