#include "coordinator/app/model_saving.h"

#include <chrono>

#include "coordinator/app/child_call.h"
#include "shared/base/places.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

/// Converting rewrites a model of at most 2 GiB once.
constexpr std::chrono::minutes kPatience(30);

}  // namespace

Result<void> save_bf16_model(const fs::path& model, const DiscoverOptions& options) {
  const std::string file = fs::absolute(model).lexically_normal().string();
  std::vector<std::string> arguments = {
      (base::program_folder() / "layerfarm-onnx").string(), "convert", "--bf16", "--model=" + file,
      "--out=" + fs::absolute(options.save_bf16_model).lexically_normal().string()};
  for (const auto& [name, value] : options.dims) arguments.push_back("--keep-dim=" + name);
  const auto end = call_child(std::move(arguments), {}, Take::Errors, kPatience);
  if (!end) return fail(end.error());
  if (end->status == 0) return {};
  std::string why = end->text.substr(0, end->text.find('\n'));
  if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
  if (why.empty()) why = "its reader died while it converted the model";
  return fail(ErrorCode::InvalidInput, model.string() + ": " + why);
}

}  // namespace layerfarm::coordinator::app
