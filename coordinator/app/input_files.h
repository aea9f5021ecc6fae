// The user's arrays (`--inputs DIR`): which names and types they have, and what a model makes of
// them. Arrays are read by workers; here only their headers are, so that a misspelt name or another
// type is said before any work.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "coordinator/app/array_headers.h"
#include "shared/base/result.h"
#include "shared/domain/keys.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

struct GivenArray {
  std::string file;  ///< its name in the folder
  ArrayHeader header;
};

struct InputFiles {
  domain::InputSet set;            ///< no folder when none was given
  std::vector<std::string> names;  ///< of the arrays, sorted, each once
  /// Those whose type is known, by name; a worker judges the others.
  std::map<std::string, GivenArray> arrays;
  /// False when the names in some file cannot be read (damaged, an archive of more than 4 GiB):
  /// then nothing is said about names, and a worker says what is wrong with the file.
  bool all_known = true;
};

/// Looks at the folder; other content is another input set. An empty folder name means no arrays.
[[nodiscard]] base::Result<InputFiles> find_inputs(const std::string& folder);

/// What one model takes of the arrays.
struct InputUse {
  std::vector<std::string> used;     ///< names of arrays
  std::vector<std::string> missing;  ///< inputs of the model itself without an array, by name
  std::vector<std::string> misfits;  ///< why an array can be no input of its name, for people
  std::vector<std::string> partly;   ///< the same where it suits other layers
  std::size_t taken = 0;             ///< inputs of layers that come from arrays
  std::size_t drawn = 0;             ///< and those that stay random
};
[[nodiscard]] InputUse input_use(const InputFiles& files, const domain::ModelAnalysis& model);
/// `4 of 57 layer inputs come from 2 arrays of --inputs, the others are random (model inputs
/// without an array: mask)`
[[nodiscard]] std::string input_use_text(const InputUse& use);

}  // namespace layerfarm::coordinator::app
