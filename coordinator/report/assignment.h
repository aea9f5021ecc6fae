// Assignment: which executor each operator of a model shall run on, by a report or a compiler file
// (spec sections 4 and 20). Pure but for find_assignment; nothing is written here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/report/json.h"
#include "coordinator/report/report_files.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::report {

/// What a file says: by layer id (`ops`), by line and column of the imported module
/// (`op_assignments`), or both.
struct AssignmentFile {
  std::map<std::string, std::string> by_layer;
  std::map<std::string, std::string> by_place;
};
/// Entries of `ops` without a recommendation, or that the model no longer has, say nothing.
/// InvalidInput naming `path` when the file has neither of the two.
[[nodiscard]] base::Result<AssignmentFile> read_assignment(const json::Value& file,
                                                           const std::string& path);

/// An operator of the model, in its order.
struct OperatorPlace {
  std::string layer_id;  ///< empty where no layer is called after it
  std::string place;     ///< "line:column" in the module imported now; empty when unknown
};
struct Assigned {
  std::vector<std::string> executors;         ///< of each operator; empty = nothing says
  std::size_t unknown_executors = 0;          ///< names that the chip does not have: ignored
  std::vector<std::string> unmatched_layers;  ///< layer ids that no operator has
  std::vector<std::string> unmatched_places;  ///< lines where no operator is
  std::size_t unassigned = 0;                 ///< layers that nothing says an executor of
};
/// What the file says by layer wins over what it says by place: places may be of an older module.
[[nodiscard]] Assigned assign(const AssignmentFile& file, std::span<const OperatorPlace> operators,
                              std::span<const std::string> executors);

/// The file that says the assignment.
struct AssignmentSource {
  std::filesystem::path path;
  json::Value content;
  bool is_report = false;  ///< else a compiler file, which stays as it is
};
/// The part of a model that a file is of: as it says itself (`_subgraph`), else as its name says;
/// none: the whole model.
[[nodiscard]] std::optional<domain::NodeRange> subgraph_of(const json::Value& file,
                                                           const std::filesystem::path& path);
/// What is to be run.
struct Wanted {
  std::string_view model_name;
  std::optional<domain::NodeRange> subgraph;  ///< none: the whole model
};
/// Whose a file is that another model's name leads to, for people: "nodes 0 to 9 of X" where a
/// model called X_subgraph_0_9 is wanted, "the model X_subgraph_0_9" the other way round. Empty: as
/// far as the file says, it is what is wanted.
[[nodiscard]] std::string other_owner(const json::Value& file, const std::filesystem::path& path,
                                      const Wanted& wanted);
/// That none of these files is another model's: names of models can be made of one another
/// (X_subgraph_0_9, X_compiler). Incompatible, saying whose it is and what to do.
[[nodiscard]] base::Result<void> check_owner(const ReportPaths& paths, const Wanted& wanted);
/// Its report (with `chip`, in `<folder>/<chip>/` first), else any report of the folder that names
/// the model, else the compiler file by its name or the model it names. A file of another part of
/// the model never fits. NotFound when there is none; InvalidInput when several reports fit, or one
/// that fits cannot be read or says that it is of another part.
[[nodiscard]] base::Result<AssignmentSource> find_assignment(const std::filesystem::path& folder,
                                                             const Wanted& wanted,
                                                             std::string_view chip);

}  // namespace layerfarm::coordinator::report
