// What the core is told about a job. No content: layers, chips and outcomes stay with
// coordinator/app.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/core/ids.h"
#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::core {

/// What the store knew when the job was added.
enum class Known : std::uint8_t {
  No,
  Succeeded,  ///< answered Done; runs again only when a blob of it was lost
  Failed,     ///< answered otherwise (Refused): what builds on it fails at once
};

struct JobSpec {
  JobId id;  ///< must be the number of jobs added so far
  domain::Stage stage = domain::Stage::Execute;
  ClassId ability;  ///< a worker must have it
  GroupId group;    ///< kNoGroup for analyze and prepare
  /// Jobs that must have succeeded first: at most two, each with a smaller id.
  /// Compile needs no prepare, so neither waits for the other.
  std::vector<JobId> needs = {};
  std::int16_t priority = 0;  ///< larger goes first
  /// Estimate; 0 = unknown (the core learns means for lease sizes). Longer goes first.
  std::uint32_t cost_us = 0;
  /// The worker's own bound for this job; 0 = none. Past it by policy.overdue_slack the core stops
  /// believing the worker.
  std::uint32_t limit_ms = 0;
  Known known = Known::No;
  bool speculative = false;  ///< only when a worker would idle (skip mode), until JobsWanted
  bool exclusive = false;    ///< runs while nothing else runs on its host (timing)
};

/// Optional facts about a group, before its jobs.
struct GroupSpec {
  GroupId group;
  std::uint16_t batch = 1;  ///< compile jobs that gain by being in one lease (Ability::batch)
};

}  // namespace layerfarm::coordinator::core
