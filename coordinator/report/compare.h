// What changed from one report to another, or from one compiler file to another: for people who
// changed a tool, a chip or an option and ask what came of it. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/report/json.h"
#include "shared/base/result.h"

namespace layerfarm::coordinator::report {

/// What a file of ours is.
enum class FileKind { Report, Compiler };

/// Another status of one layer on one executor; empty = not tested there.
struct VerdictChange {
  std::string layer_id;
  std::string executor;
  std::string a;
  std::string b;
};

/// Another executor; none = the file recommends none.
struct ChoiceChange {
  std::string layer_id;  ///< in compiler files the location, `line:column`
  std::optional<std::string> a;
  std::optional<std::string> b;
};

struct TimingChange {
  std::string layer_id;
  std::string executor;
  double a_ms = 0;
  double b_ms = 0;
  double percent = 0;  ///< of the first; infinite where that is 0
};

struct Differences {
  FileKind kind = FileKind::Report;
  double time_threshold_percent = 0;
  std::size_t compared = 0;                ///< layers (locations) that are in both
  std::vector<VerdictChange> verdicts;     ///< tested in both
  std::vector<VerdictChange> tested_once;  ///< tested in one of them
  std::vector<ChoiceChange> choices;
  std::vector<TimingChange> timings;
  std::vector<std::string> only_in_a;  ///< layer ids (locations)
  std::vector<std::string> only_in_b;
  /// What explains differences and is none itself: another model, chip or setting.
  std::vector<std::string> notes;

  [[nodiscard]] std::size_t count() const;
};

/// InvalidInput when the file is neither a report nor a compiler file; `name` is what it is called.
[[nodiscard]] base::Result<FileKind> kind_of(const json::Value& file, const std::string& name);

/// A run time counts when it changed by more than `time_threshold_percent` of the first one's; what
/// only one of them timed does not. InvalidInput when the files are of two kinds, or of none.
[[nodiscard]] base::Result<Differences> compare(const json::Value& a, const json::Value& b,
                                                double time_threshold_percent);

/// How the two files are called.
struct ComparedNames {
  std::string a;
  std::string b;
};
/// For people: a block per kind of difference, those that are empty left out.
[[nodiscard]] std::string compare_text(const Differences& differences, const ComparedNames& names);
/// For programs.
[[nodiscard]] json::Value compare_json(const Differences& differences, const ComparedNames& names);

}  // namespace layerfarm::coordinator::report
