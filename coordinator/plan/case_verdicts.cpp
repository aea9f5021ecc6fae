// Verdicts that are there: in which order a layer's executors speak in skip mode, and how a case
// ends together with those that copy it.
#include <utility>

#include "coordinator/plan/cases.h"

namespace layerfarm::coordinator::plan {

// ---- skip mode ----

/// The case's own verdict is there; in skip mode those above it speak first.
void Cases::verdict(const Place& at, CaseSettled out) {
  waits_[at.id] = kNone;
  if (!at.options().skip_mode) return release(at, std::move(out));
  held_[at.id] = std::move(out);
  state_[at.id] = CaseState::Held;
  resolve_layer(at);
}

/// Goes down the executors of a layer as far as verdicts are there.
void Cases::resolve_layer(const Place& any) {
  for (std::uint32_t executor = 0; executor < any.file->executors; ++executor) {
    const Place at = tables_.beside(any, executor);
    switch (state_[at.id]) {
      case CaseState::NotSelected:
      case CaseState::Skipped:
      case CaseState::Tested:
      case CaseState::Unsettled:
      case CaseState::Timing:
        continue;
      case CaseState::Works:
      case CaseState::TimingSuccess:
      case CaseState::Idle:
      case CaseState::Waiting:
      case CaseState::WaitingForSource:
        return;
      case CaseState::WaitingEarly:
        state_[at.id] = CaseState::Waiting;
        if (waits_[at.id] != kNone) maker_.make_firm(waits_[at.id]);
        return;
      case CaseState::Held:
        break;
    }
    CaseSettled out = std::move(held_.at(at.id));
    held_.erase(at.id);
    const bool works = out.how == How::Judged && out.judgement.status == domain::Status::Success;
    if (works) skip_below(any, executor);
    release(at, std::move(out));
    if (works) return;
  }
}

/// The layer works with `executor`: what is below is not wanted.
void Cases::skip_below(const Place& any, std::uint32_t executor) {
  for (std::uint32_t lower = executor + 1; lower < any.file->executors; ++lower) {
    const Place at = tables_.beside(any, lower);
    if (state_[at.id] == CaseState::NotSelected || is_settled(state_[at.id])) continue;
    stop_waiting(at.id);
    held_.erase(at.id);
    skip(at, SkipReason::AlreadyWorks, executor);
  }
}

// ---- the end of a case ----

void Cases::skip(const Place& at, SkipReason reason, std::uint32_t executor) {
  CaseSettled out = settled(at, How::Skipped);
  out.skip = reason;
  out.skip_executor = executor;
  settle(at, std::move(out));
}

/// The end of a case, and of those that copy it.
void Cases::settle(const Place& at, CaseSettled out) {
  CaseState end = CaseState::Tested;
  switch (out.how) {
    case How::Judged:
    case How::Failed:
    case How::Copied:
    case How::CopiedOld:
      if (out.judgement.status == domain::Status::Success) end = CaseState::Works;
      break;
    case How::Skipped:
      end = CaseState::Skipped;
      break;
    case How::Unsettled:
      end = CaseState::Unsettled;
      break;
  }
  state_[at.id] = end;
  waits_[at.id] = kNone;
  ++counts_[at.file_number].settled;
  const bool has_copies = !at.file->next_copy.empty() && at.file->source[at.layer] == at.layer;
  if (!has_copies) {
    turn_.settled.push_back(std::move(out));
    return;
  }
  turn_.settled.push_back(out);
  for (std::uint32_t layer = at.file->next_copy[at.layer]; layer != kNone;
       layer = at.file->next_copy[layer]) {
    const std::uint32_t id = at.file->case_of(layer, at.executor);
    if (state_[id] == CaseState::WaitingForSource) copy(tables_.place_in(at.file_number, id), out);
  }
}

// ---- copies ----

/// Its source has ended: so does this one.
void Cases::copy(const Place& at, const CaseSettled& from) {
  if (at.options().skip_mode) {
    for (std::uint32_t higher = 0; higher < at.executor; ++higher) {
      if (state_[at.file->case_of(at.layer, higher)] != CaseState::Works) continue;
      return skip(at, SkipReason::AlreadyWorks, higher);
    }
  }
  CaseSettled out = from;
  out.id = CaseId(at.id);
  out.layer = at.layer;
  out.source_layer = from.layer;
  switch (from.how) {
    case How::Judged:
    case How::Failed:
    case How::Copied:
    case How::CopiedOld:
      out.how = How::Copied;
      break;
    case How::Unsettled:
      out.reason = "duplicate of " + at.request->given.model->layers[from.layer].id +
                   ", which is unsettled: " + from.reason;
      break;
    case How::Skipped: {
      const Place source = tables_.place_in(at.file_number, from.id.value());
      const auto works_in_file =
          from.skip == SkipReason::AlreadyWorks ? tables_.old_success(source) : std::nullopt;
      if (from.skip == SkipReason::AlreadyWorks && (!works_in_file || at.options().recompute))
        break;  // by this run: so here too
      if (works_in_file && *works_in_file < at.executor) {
        out.skip_executor = *works_in_file;  // which is copied here as well
        break;
      }
      const auto old = source.old_status();
      if (works_in_file && old) {
        out.how = How::CopiedOld;
        out.judgement.status = *old;
      } else {
        out.skip = SkipReason::DuplicateNotTested;
      }
      break;
    }
  }
  const bool works = (out.how == How::Copied || out.how == How::CopiedOld) &&
                     out.judgement.status == domain::Status::Success;
  if (works && at.options().skip_mode) skip_below(at, at.executor);
  settle(at, std::move(out));
}

}  // namespace layerfarm::coordinator::plan
