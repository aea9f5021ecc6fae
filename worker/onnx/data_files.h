// Constants of the modules that we write: small ones inside, large ones as blobs that lie beside
// the module.
#pragma once

#include <optional>

#include "shared/base/blob_folder.h"
#include "shared/base/result.h"
#include "shared/domain/layer.h"
#include "worker/onnx/constant.h"

namespace layerfarm::worker::onnx {

/// Larger constants go to files of their own, named by their digest, so that equal weights are
/// stored once and never copied.
inline constexpr std::uint64_t kMaxInside = std::uint64_t{64} << 10;

[[nodiscard]] bool goes_to_file(const Constant& value);
/// Stores the value as a blob. Repeated elements are written piece by piece, never held in memory
/// as a whole.
[[nodiscard]] base::Result<domain::DataFile> store_data(const Constant& value,
                                                        const base::BlobFolder& blobs);
/// Makes `tensor` refer to that file.
void refer_to_data(const Constant& value, const domain::DataFile& data, pb::TensorProto& tensor);
/// Both: type and data into `tensor` (its name is left alone), and the file when there is one.
[[nodiscard]] base::Result<std::optional<domain::DataFile>> write_tensor(
    const Constant& value, pb::TensorProto& tensor, const base::BlobFolder& blobs);

}  // namespace layerfarm::worker::onnx
