// What is said between coordinator and workers, in both directions (docs/protocol.md). Plain
// structs; codec.h turns them into bytes and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shared/base/digest.h"
#include "shared/domain/analyze_request.h"
#include "shared/domain/chip.h"
#include "shared/domain/keys.h"
#include "shared/domain/layer.h"
#include "shared/domain/outcome.h"
#include "shared/domain/whole_request.h"
#include "shared/protocol/ids.h"

namespace layerfarm::protocol {

/// Versions this program speaks. Raised only when an old peer could misunderstand; added keys need
/// no raise.
inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 1;

// ---- worker -> coordinator ----

/// What a worker can do on one chip.
struct Ability {
  std::string toolchain;
  base::Digest chip;  ///< digest of chip_json: exactly this description
  bool found = false;
  domain::ToolIdentity identity;
  std::string missing;
  std::string how_to_get;
  bool needs_prepare = true;
  bool needs_compile = true;
  std::uint32_t batch = 1;
  bool takes_map = false;  ///< one compile takes a whole model with its executors by place
  friend bool operator==(const Ability&, const Ability&) = default;
};

struct Hello {
  std::uint32_t min_version = kProtocolMin;
  std::uint32_t max_version = kProtocolMax;
  std::string software;  ///< "layerfarm-worker 0.1.0 (commit)"
  std::vector<std::string> features;
  std::string name;  ///< given by whoever started it; shown to people
  std::string host;
  std::int64_t pid = 0;
  std::vector<int> cores;
  std::string cpu_model;
  std::vector<Ability> abilities;
  std::vector<AttemptId>
      running;  ///< attempts it still works on or holds results of, after a reconnect
  friend bool operator==(const Hello&, const Hello&) = default;
};

/// The worker's loop is alive. Sent at an interval and whenever what it runs changes; any message
/// counts as life.
struct Heartbeat {
  AttemptId attempt;  ///< first attempt in hand; 0 = idle
  std::string phase;  ///< "compile", "run" ...; "waits" while it waits; for the progress line
  std::int64_t phase_ms = 0;
  /// What it waits for instead of working, as a person should read it after "waits for"; a wait is
  /// told once it has lasted a while.
  std::string waits_for = {};
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// It began these attempts (a place counts against a worker only from here on).
struct Started {
  std::vector<AttemptId> attempts;
  friend bool operator==(const Started&, const Started&) = default;
};

struct AttemptOutcome {
  AttemptId attempt;
  domain::Outcome outcome;
  friend bool operator==(const AttemptOutcome&, const AttemptOutcome&) = default;
};

/// Answers; resent until acknowledged. `credits` = how many more leases it can take after these.
struct Outcomes {
  std::vector<AttemptOutcome> outcomes;
  friend bool operator==(const Outcomes&, const Outcomes&) = default;
};

/// The worker stops on purpose; what it held goes back to the queue and counts against nobody.
struct Goodbye {
  std::string reason;
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

// ---- coordinator -> worker ----

struct Welcome {
  std::uint32_t version = kProtocolMax;
  std::uint32_t worker = 0;  ///< its registration; a new one is a new place
  std::uint64_t epoch = 0;   ///< of this coordinator; in every header
  std::int64_t heartbeat_ms = 2000;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};

struct Reject {
  std::string reason;
  friend bool operator==(const Reject&, const Reject&) = default;
};

/// "I do not know you": answer with Hello.
struct HelloAgain {
  friend bool operator==(const HelloAgain&, const HelloAgain&) = default;
};

/// One job of a lease. Jobs are done in the order given; what an earlier job of the lease made is
/// there for a later one.
struct LeasedJob {
  AttemptId attempt;
  domain::Stage stage = domain::Stage::Execute;
  /// Index into Lease::layers; for analyze into Lease::analyze, for whole into Lease::whole.
  std::uint32_t layer = 0;
  std::uint32_t executor =
      0;  ///< index into the chip's executors (compile, execute, recompare, time)
  /// Jobs of this lease that it builds on: index in Lease::jobs, or -1 when the result is given
  /// below or not needed.
  std::int32_t prepare_job = -1;
  std::int32_t compile_job = -1;
  std::int32_t prepared = -1;      ///< index into Lease::prepared
  std::int32_t artifact = -1;      ///< index into Lease::artifacts
  std::vector<base::Digest> kept;  ///< recompare: the outputs kept by execute
  domain::Tolerance tolerance;     ///< execute, recompare, whole: what the counts are for
  std::int32_t runs = 0;           ///< time: how many
  std::int32_t memory_factor = 1;  ///< after a memory kill: how much more it may claim
  friend bool operator==(const LeasedJob&, const LeasedJob&) = default;
};

/// A layer as a lease holds it: shared with the plan, not copied. What the report alone needs
/// (MACs, the looser signature, its place in the model) is not sent.
struct LeasedLayer {
  std::shared_ptr<const domain::Layer> layer;
  friend bool operator==(const LeasedLayer& a, const LeasedLayer& b) {
    return a.layer == b.layer || (a.layer && b.layer && *a.layer == *b.layer);
  }
};

struct Lease {
  domain::ChipSpec
      chip;  ///< all jobs of a lease are for one chip; empty name for analyze and prepare alone
  domain::Limits limits;  ///< the user's flags over the chip's
  domain::InputSet inputs;
  std::vector<LeasedLayer> layers;
  std::vector<domain::Prepared> prepared;
  std::vector<domain::Artifact> artifacts;
  std::vector<LeasedJob> jobs;
  std::vector<domain::AnalyzeRequest> analyze;  ///< what analyze jobs are asked
  std::vector<domain::WholeRequest> whole;      ///< what whole jobs are asked
  bool compile_together = true;                 ///< the compile jobs may share a module
  friend bool operator==(const Lease&, const Lease&) = default;
};

/// These outcomes are durable; the worker may forget them.
struct OutcomesKept {
  std::vector<AttemptId> attempts;
  friend bool operator==(const OutcomesKept&, const OutcomesKept&) = default;
};

/// Drop these; those under way are ended. Each is still answered (Cancelled).
struct Cancel {
  std::vector<AttemptId> attempts;
  friend bool operator==(const Cancel&, const Cancel&) = default;
};

/// Finish what is in hand and leave.
struct Stop {
  bool now = false;  ///< end children at once
  friend bool operator==(const Stop&, const Stop&) = default;
};

using FromWorker = std::variant<Hello, Heartbeat, Started, Outcomes, Goodbye>;
using FromCoordinator =
    std::variant<Welcome, Reject, HelloAgain, Lease, OutcomesKept, Cancel, Stop>;

}  // namespace layerfarm::protocol
