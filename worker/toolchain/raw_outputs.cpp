#include "worker/toolchain/raw_outputs.h"

#include <optional>
#include <system_error>
#include <utility>

#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

/// What the reference gave for this output; null while the run makes the reference itself.
const domain::TensorType* reference_type(const RunJob& job, std::size_t index) {
  if (job.prepared == nullptr || index >= job.prepared->expected_types.size()) return nullptr;
  return &job.prepared->expected_types[index];
}

/// The type of an output of so many bytes; none when no type can be meant. A raw file says its
/// size alone. Where the reference's answer has another size than the layer declares, the shape
/// depends on the values that were fed (NonZero, Compress): then the reference says it, and
/// another number of elements is a difference for the comparison to tell, not a broken file.
std::optional<domain::TensorType> type_of_output(const domain::TensorType& declared,
                                                 const domain::TensorType* reference,
                                                 std::uint64_t bytes) {
  if (bytes == declared.bytes() && (reference == nullptr || bytes == reference->bytes()))
    return declared;
  if (reference == nullptr || reference->dtype != declared.dtype ||
      reference->bytes() == declared.bytes())
    return std::nullopt;
  if (bytes == reference->bytes()) return *reference;
  const std::uint64_t each = domain::dtype_size(declared.dtype);
  if (each == 0 || bytes % each != 0) return std::nullopt;
  return domain::TensorType{declared.dtype, {static_cast<std::int64_t>(bytes / each)}};
}

}  // namespace

std::vector<std::string> raw_inputs(const RunJob& job, const base::BlobFolder& blobs) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < job.layer->inputs.size(); ++i) {
    out.push_back(job.layer->inputs[i].type.mlir() + "=@" +
                  blobs.path(job.prepared->inputs[i]).string());
  }
  return out;
}

std::string raw_output_name(std::size_t index) {
  return "output_" + std::to_string(index) + ".bin";
}

RunResult with_raw_outputs(RunResult run, const RunJob& job, const std::filesystem::path& folder) {
  for (std::size_t i = 0; i < job.layer->outputs.size(); ++i) {
    const domain::TensorType& declared = job.layer->outputs[i];
    std::filesystem::path file = folder / raw_output_name(i);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    std::optional<domain::TensorType> type;
    if (!error) type = type_of_output(declared, reference_type(job, i), bytes);
    if (!type) {
      run.ending = domain::Ending::Refused;
      run.diagnostic = diagnostic(
          "run", "refused",
          "output " + std::to_string(i) + " has " + (error ? "no" : std::to_string(bytes)) +
              " bytes, its type " + declared.mlir() + " takes " + std::to_string(declared.bytes()));
      return run;
    }
    run.types.push_back(std::move(*type));
    run.outputs.push_back(std::move(file));
  }
  return run;
}

}  // namespace layerfarm::worker::toolchain
