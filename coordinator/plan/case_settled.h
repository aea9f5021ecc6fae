// What becomes of cases, in the words of the report. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "shared/base/ids.h"
#include "shared/domain/outcome.h"
#include "shared/domain/tolerance.h"
#include "shared/domain/verdict.h"

namespace layerfarm::coordinator::plan {

/// One (layer, executor, chip); dense over a CaseBook: layer by layer, executors in priority order
/// inside a layer.
using CaseId = base::StrongId<struct CaseTag, std::uint32_t>;
/// One report: a (model, chip) of a request; dense over a CaseBook.
using FileId = base::StrongId<struct FileTag, std::uint32_t>;

enum class How : std::uint8_t {
  Judged,     ///< it ran; the comparison was judged
  Failed,     ///< a stage failed (or the layer cannot be tested): status error
  Copied,     ///< as the case that it was copied from, in this run
  CopiedOld,  ///< as the report file has it for the layer that it was copied from
  Skipped,    ///< not tested, on purpose
  Unsettled,  ///< no verdict: infrastructure
};

enum class SkipReason : std::uint8_t {
  ExecutorInSkipList,
  OpInSkipList,
  AlreadyWorks,        ///< skip mode: with `skip_executor`
  DuplicateNotTested,  ///< of `source_layer`, which was not tested on this executor
};

struct CaseSettled {
  CaseId id;
  FileId file;
  std::uint32_t layer = 0;     ///< place in the model
  std::uint32_t executor = 0;  ///< place in the chip
  How how = How::Unsettled;
  /// Judged, Failed, Copied: status and reason; a failure's own words are in `outcome`.
  domain::Judgement judgement;
  domain::Tolerance tolerance;  ///< in force when it was judged; for a copy the source's
  /// Judged: what execute (or recompare) gave. Failed: what the failed stage gave. For a copy the
  /// source's.
  std::shared_ptr<const domain::Outcome> outcome;
  std::shared_ptr<const domain::Outcome> timed;  ///< stage time, when it was asked for and worked
  bool timed_now = false;                        ///< `timed` was measured in this run
  bool stored = false;          ///< the verdict rests on outcomes of earlier runs alone
  bool compile_stored = false;  ///< its artifact was there before this run
  /// Judged, Failed: key under which the store has the compile job's outcome; zero when the
  /// toolchain compiles nothing.
  base::Digest compile_key;
  base::Digest prepare_key;
  std::uint32_t source_layer = 0;              ///< Copied, CopiedOld, DuplicateNotTested
  SkipReason skip = SkipReason::AlreadyWorks;  ///< Skipped
  std::uint32_t skip_executor = 0;             ///< AlreadyWorks
  std::string reason;                          ///< Unsettled: why
};

/// The reason for people (spec section 12). `executor` and `other` are names: of the case's own
/// executor, and of skip_executor; `source` is the id of source_layer. Also says how a copy came to
/// be.
[[nodiscard]] std::string skip_text(const CaseSettled& settled, const std::string& executor,
                                    const std::string& other, const std::string& source);

}  // namespace layerfarm::coordinator::plan
