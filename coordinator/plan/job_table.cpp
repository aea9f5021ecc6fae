#include "coordinator/plan/job_table.h"

#include <utility>

namespace layerfarm::coordinator::plan {
namespace {

std::uint64_t mixed(const WorkKey& work) {
  std::uint64_t out = (std::uint64_t{work.a} << 32U | work.b) * 0x9E3779B97F4A7C15U;
  out ^=
      (std::uint64_t{work.c} << 8U | static_cast<std::uint64_t>(work.stage)) * 0xC2B2AE3D27D4EB4FU;
  out ^= out >> 29U;
  out *= 0xBF58476D1CE4E5B9U;
  return out ^ (out >> 32U);
}

}  // namespace

std::size_t JobTable::slot_of(const WorkKey& work) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = mixed(work) & mask;
  while (slots_[at] != kNone && work_of_(slots_[at]) != work) at = (at + 1) & mask;
  return at;
}

std::uint32_t JobTable::find(const WorkKey& work) const {
  return slots_.empty() ? kNone : slots_[slot_of(work)];
}

void JobTable::grow() {
  const std::vector<std::uint32_t> old = std::exchange(
      slots_, std::vector<std::uint32_t>(slots_.empty() ? 256 : slots_.size() * 2, kNone));
  const std::size_t mask = slots_.size() - 1;
  for (const std::uint32_t job : old) {
    if (job == kNone) continue;
    std::size_t at = mixed(work_of_(job)) & mask;
    while (slots_[at] != kNone) at = (at + 1) & mask;
    slots_[at] = job;
  }
}

std::uint32_t JobTable::add(const JobRecord& record) {
  records_.push_back(record);
  return size() - 1;
}

std::uint32_t JobTable::add(const JobRecord& record, const WorkKey& work) {
  if ((used_ + 1) * 4 > slots_.size() * 3) grow();
  const std::uint32_t job = add(record);
  std::uint32_t& slot = slots_[slot_of(work)];
  if (slot == kNone) ++used_;
  slot = job;
  return job;
}

std::size_t JobTable::memory_bytes() const {
  return records_.size() * sizeof(JobRecord) + slots_.capacity() * sizeof(std::uint32_t);
}

DigestNumbers::Number DigestNumbers::number_of(const base::Digest& digest) {
  const auto slot_of = [this](const base::Digest& wanted) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::hash<base::Digest>{}(wanted)&mask;
    while (slots_[at] != kNone && digest_of_(slots_[at]) != wanted) at = (at + 1) & mask;
    return at;
  };
  if ((std::size_t{count_} + 1) * 4 > slots_.size() * 3) {
    slots_.assign(slots_.empty() ? 256 : slots_.size() * 2, kNone);
    for (std::uint32_t i = 0; i < count_; ++i) slots_[slot_of(digest_of_(i))] = i;
  }
  std::uint32_t& slot = slots_[slot_of(digest)];
  if (slot != kNone) return {slot, false};
  slot = count_++;
  return {slot, true};
}

}  // namespace layerfarm::coordinator::plan
