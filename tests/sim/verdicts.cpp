#include "tests/sim/verdicts.h"

#include <algorithm>

namespace layerfarm::sim {
namespace {

bool excused(const std::string& verdict) {
  return verdict == "unsettled" || verdict == "kills its worker";
}

/// Verdicts that this job may have, given those of the jobs that it needs.
std::vector<std::string> possible(const SimJob& job, const std::vector<std::string>& verdicts) {
  std::vector<std::string> words;
  bool needs_done = true;
  bool needs_may_have_been_done = true;  // a producer that ran again may have ended otherwise then
  for (const protocol::JobId need : job.spec.needs) {
    const std::string& verdict = verdicts[need.value()];
    needs_done = needs_done && verdict == "done";
    // ... or its answer was overtaken, and then nobody wanted it any more.
    const bool may = verdict == "done" || verdict == "dropped" || excused(verdict);
    needs_may_have_been_done = needs_may_have_been_done && may;
  }
  if (!needs_done) words.emplace_back("needs what failed");
  if (needs_done || needs_may_have_been_done) {
    const auto own = own_ending(job.nature, 2);
    if (own) words.emplace_back(domain::ending_name(*own));
  }
  if (job.instead_of) words.emplace_back("dropped");
  return words;
}

}  // namespace

void check_verdicts(World& world, const std::vector<std::string>& verdicts) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (excused(verdicts[i])) continue;
    const std::vector<std::string> words = possible(world.workload().jobs[i], verdicts);
    if (std::find(words.begin(), words.end(), verdicts[i]) != words.end()) continue;
    world.fail("job " + std::to_string(i) + " is \"" + verdicts[i] + "\", which does not follow");
    return;
  }
}

}  // namespace layerfarm::sim
