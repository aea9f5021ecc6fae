// Where the files of a report are, and reading them. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::report {

struct ReportPaths {
  std::filesystem::path report;
  std::filesystem::path compiler;
  std::filesystem::path macs;
};

/// File name without its last extension: `net1.0-12.onnx` -> `net1.0-12`.
[[nodiscard]] std::string model_name_of(const std::filesystem::path& model);
/// "" or `_subgraph_<i>_<j>`.
[[nodiscard]] std::string subgraph_suffix(const std::optional<domain::NodeRange>& subgraph);
/// The numbers of that suffix in the name of a report or compiler file of this model; none where it
/// is of the whole model, or of another one.
[[nodiscard]] std::optional<domain::NodeRange> subgraph_in_name(const std::filesystem::path& path,
                                                                std::string_view model_name);
/// `torq_gen_config_<model><suffix>{,_compiler,_mac_debug}.json` in `folder`; `suffix` is "" or
/// `_subgraph_<i>_<j>`.
[[nodiscard]] ReportPaths report_paths(const std::filesystem::path& folder,
                                       std::string_view model_name, std::string_view suffix = "");
/// InvalidInput when a file system would refuse one of the names (255 bytes, with what
/// write_file_atomically adds while it writes).
[[nodiscard]] base::Result<void> check_names_fit(const ReportPaths& paths);
/// The compiler file beside a report, whatever the report is called.
[[nodiscard]] std::filesystem::path compiler_path_of(const std::filesystem::path& report);
/// What a compiler file's report is called: without `_compiler`; where that changes nothing, with
/// `_report` at the end of the stem.
[[nodiscard]] std::filesystem::path report_path_of(const std::filesystem::path& compiler);

/// One state of a file on disk: differs after every rename into place and after every write.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};
/// Empty when there is no such file.
[[nodiscard]] std::optional<FileState> file_state(const std::filesystem::path& path);

/// Reads a report or compiler file. NotFound, or InvalidInput naming file and reason when it is no
/// JSON object, its `ops` (or `op_assignments`) is none, or it is a MAC sidecar.
[[nodiscard]] base::Result<json::Value> load_config(const std::filesystem::path& path);

/// That bounds of a tolerance, those that are there, are numbers which can be one: InvalidInput
/// naming file, key (`where`), value and what to do.
[[nodiscard]] base::Result<void> check_bounds(const json::Value* tolerance,
                                              const std::filesystem::path& path,
                                              const std::string& where);
/// The same of what persons edited into the entries of a report.
[[nodiscard]] base::Result<void> check_edited_bounds(const json::Value& report,
                                                     const std::filesystem::path& path);

/// Which report is meant when only a model is given: with `chip`, in `<folder>/<chip>/`, else in
/// `folder`; without, in `folder`, else in the one folder below it that has it. NotFound names the
/// first place looked at; InvalidInput lists several. `suffix` as for report_paths.
[[nodiscard]] base::Result<std::filesystem::path> find_report(const std::filesystem::path& folder,
                                                              std::string_view model_name,
                                                              std::string_view chip,
                                                              std::string_view suffix = "");

/// The same, and the compiler file at one of these places where there is no report at all.
[[nodiscard]] base::Result<std::filesystem::path> find_config(const std::filesystem::path& folder,
                                                              std::string_view model_name,
                                                              std::string_view chip,
                                                              std::string_view suffix = "");

/// The same files in `<their folder>/<chip>/`.
[[nodiscard]] ReportPaths in_chip_folder(const ReportPaths& paths, const std::string& chip);

struct Move {
  std::filesystem::path from;
  std::filesystem::path to;
};
/// How the three files of a report (those there are) get out of the way, into `<folder>/<chip>/`.
/// InvalidInput when a report is there already.
[[nodiscard]] base::Result<std::vector<Move>> moves_aside(const ReportPaths& paths,
                                                          const std::string& chip);
/// Makes the folders that are missing.
[[nodiscard]] base::Result<void> carry_out(const std::vector<Move>& moves);

}  // namespace layerfarm::coordinator::report
