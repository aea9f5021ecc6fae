#include "coordinator/app/reader_calls.h"

#include <chrono>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/app/child_call.h"
#include "shared/base/files.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// Converting rewrites a model of at most 2 GiB once.
constexpr std::chrono::minutes kPatience(30);

std::string full_path(const fs::path& path) {
  return fs::absolute(path).lexically_normal().string();
}

/// Names of the user stand behind an equals sign: they may begin with a hyphen.
std::vector<std::string> reader_command(const char* what, const fs::path& model,
                                        const DiscoverOptions& options) {
  std::vector<std::string> out = {(base::program_folder() / "layerfarm-onnx").string(), what,
                                  "--model=" + full_path(model)};
  for (const auto& [name, value] : options.dims) out.push_back("--keep-dim=" + name);
  return out;
}

/// Its own words are the error, without the file that they begin with.
Result<void> call_reader(std::vector<std::string> command, const fs::path& model) {
  const auto end = call_child(std::move(command), {}, Take::Errors, kPatience);
  if (!end) return fail(end.error());
  if (end->status == 0) return {};
  std::string why = end->text.substr(0, end->text.find('\n'));
  const std::string file = full_path(model) + ": ";
  if (why.starts_with(file)) why.erase(0, file.size());
  return fail(ErrorCode::InvalidInput, why.empty() ? "its reader died" : why);
}

}  // namespace

Result<void> save_bf16_model(const fs::path& model, const DiscoverOptions& options) {
  std::vector<std::string> command = reader_command("convert", model, options);
  command.insert(command.end(), {"--bf16", "--out=" + full_path(options.save_bf16_model)});
  auto done = call_reader(std::move(command), model);
  if (!done) return fail(done.error().code, model.string() + ": " + done.error().message);
  return {};
}

Result<domain::NodeRange> find_subgraph(const fs::path& model, const DiscoverOptions& options) {
  std::error_code error;
  auto folder = base::ScratchFolder::make(fs::temp_directory_path(error), "subgraph");
  if (!folder) return fail(folder.error());
  const fs::path result = folder->path() / "range";
  std::vector<std::string> command = reader_command("range", model, options);
  if (options.convert.bf16) command.emplace_back("--bf16");
  if (options.convert.int32) command.emplace_back("--int32");
  command.insert(command.end(), {"--from=" + options.subgraph_from, "--to=" + options.subgraph_to,
                                 "--result=" + result.string()});
  if (auto done = call_reader(std::move(command), model); !done) {
    // A name on the command line is the user's matter, not the file's.
    const std::string& why = done.error().message;
    return fail(done.error().code,
                why.starts_with("Could not resolve --") ? why : model.string() + ": " + why);
  }
  const auto text = base::read_file(result);
  if (!text) return fail(text.error());
  domain::NodeRange out;
  if (std::istringstream in{std::string(*text)}; in >> out.first >> out.last) return out;
  return fail(ErrorCode::Internal, "the reader's answer about the subgraph cannot be read");
}

}  // namespace layerfarm::coordinator::app
