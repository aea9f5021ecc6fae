// Store: what is already known, whatever dies. An append-only log of outcomes and the runs that
// asked for them; the only journal there is (docs/store.md). SqliteStore is the real one; tests use
// InMemoryStore as well, with the same contract. Everything here is called by the coordinator's
// loop thread; only the writing happens elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/base/digest.h"
#include "shared/base/ids.h"
#include "shared/base/process_identity.h"
#include "shared/base/result.h"
#include "shared/domain/outcome.h"
#include "shared/protocol/messages.h"

namespace layerfarm::coordinator::store {

using protocol::RunId;

/// Facts handed over together are durable together. Tickets grow; when one is durable, so are all
/// before it.
using Ticket = base::StrongId<struct TicketTag>;
/// Place of an outcome in the log, over all processes that share it.
using Sequence = base::StrongId<struct SequenceTag>;

/// An attempt gave this.
struct OutcomeFact {
  RunId run;
  base::Digest key;
  std::shared_ptr<const domain::Outcome> outcome;
};

/// One report that a run keeps up to date, with all that is needed to bring it up to the store
/// after a crash.
struct RunFile {
  std::string report_path;    ///< absolute
  std::string compiler_path;  ///< absolute
  std::string model_path;     ///< absolute; names the model in the report
  base::Digest analysis;      ///< blob of the encoded ModelAnalysis
  std::string chip_json;      ///< domain::chip_json of its chip
  std::string plan;  ///< the plan's options and tool identities (plan::request_json); opaque here
  friend bool operator==(const RunFile&, const RunFile&) = default;
};

struct RunFileFact {
  RunId run;
  RunFile file;
};

/// The run is over and its files are written. Without this fact the run did not end well.
struct RunEndedFact {
  RunId run;
  int exit_code = 0;
};

using Fact = std::variant<OutcomeFact, RunFileFact, RunEndedFact>;

/// One accepted request, as begin_run gets it.
struct RunStart {
  base::ProcessIdentity process;
  std::int64_t started_ms =
      0;  ///< wall clock, milliseconds since the epoch: for people and for pruning
  std::vector<std::string> command;  ///< argv
};

struct RunRecord {
  RunId id;
  RunStart start;
  bool ended = false;
  std::int64_t ended_ms = 0;
  int exit_code = 0;
  std::vector<RunFile> files;  ///< in the order in which they were told
};

struct StoredOutcome {
  Sequence sequence;
  RunId run;
  base::Digest key;
  domain::Outcome outcome;
};

/// What the writing side reports.
struct News {
  Ticket durable;  ///< everything up to here is on disk
  std::optional<base::Error>
      trouble;  ///< the last commit failed; nothing is lost, it is tried again by itself
  std::vector<std::string>
      messages;  ///< worth telling the user once each (damaged rows set aside ...)
};

/// How long the stages took of late, for estimates; indexed by the number of domain::Stage.
using TypicalTimes = std::array<std::optional<std::int64_t>, domain::kStageNumbers>;

class Store {
 public:
  virtual ~Store() = default;

  /// Durable when it returns (one commit: once per run). The id is unique over all processes that
  /// share the store.
  [[nodiscard]] virtual base::Result<RunId> begin_run(const RunStart& start) = 0;
  /// Returns at once; `take_news` tells when it is durable. What cannot be written is kept and
  /// tried again.
  virtual Ticket append(std::vector<Fact> facts) = 0;
  /// Readable when there is news. Poll it in the loop.
  [[nodiscard]] virtual int fd() const = 0;
  /// From here on `find` sees what has become durable.
  [[nodiscard]] virtual News take_news() = 0;
  /// Takes in what other processes have written. Cheap when they have not.
  virtual void refresh() = 0;

  /// The latest outcome of this key that answers later runs (domain::answers_later_runs). A damaged
  /// row counts as unknown.
  [[nodiscard]] virtual std::optional<StoredOutcome> find(const base::Digest& key) = 0;
  enum class Which { All, NotAnswering };
  /// What this run gave, in order of the log: everything, or only what `find` never shows.
  [[nodiscard]] virtual std::vector<StoredOutcome> outcomes_of(RunId run, Which which) = 0;
  /// Runs in order of their ids; `only_open`: those that have not ended (running, or died).
  [[nodiscard]] virtual std::vector<RunRecord> runs(bool only_open) = 0;
  /// Means over the last outcomes of each stage.
  [[nodiscard]] virtual TypicalTimes typical_times() = 0;
};

}  // namespace layerfarm::coordinator::store
