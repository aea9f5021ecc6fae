#include "worker/onnx/data_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "shared/base/files.h"

namespace layerfarm::worker::onnx {
namespace {

using base::fail;
using base::Result;

Result<void> write_repeated(const Constant& value, const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(base::os_error("cannot write " + path.string(), errno));
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  base::Bytes piece;
  while (piece.size() < kPiece) piece.append(value.bytes);
  for (std::uint64_t left = value.size(); left > 0;) {
    const ssize_t done = ::write(
        fd, piece.data(),
        std::min<std::uint64_t>(left, piece.size() / value.bytes.size() * value.bytes.size()));
    if (done < 0 && errno == EINTR) continue;
    // A short write may end inside an element, so what follows would be shifted: only a full disk
    // does that here.
    if (done < 0 || static_cast<std::uint64_t>(done) % value.bytes.size() != 0) {
      const int saved = done < 0 ? errno : ENOSPC;
      ::close(fd);
      return fail(base::os_error("cannot write " + path.string(), saved));
    }
    left -= static_cast<std::uint64_t>(done);
  }
  ::close(fd);
  return {};
}

}  // namespace

bool goes_to_file(const Constant& value) { return !value.is_string() && value.size() > kMaxInside; }

Result<domain::DataFile> store_data(const Constant& value, const base::BlobFolder& blobs) {
  domain::DataFile out;
  out.bytes = value.size();
  Result<base::Digest> digest;
  if (value.repeated) {
    auto scratch = base::ScratchFolder::make(blobs.root() / "tmp", "constant");
    if (!scratch) return fail(std::move(scratch.error()));
    const auto file = scratch->path() / "data";
    if (auto written = write_repeated(value, file); !written)
      return fail(std::move(written.error()));
    digest = blobs.put_file(file);
  } else {
    digest = blobs.put(value.bytes);
  }
  if (!digest) return fail(std::move(digest.error()));
  out.blob = *digest;
  out.name = digest->hex();
  return out;
}

void refer_to_data(const Constant& value, const domain::DataFile& data, pb::TensorProto& tensor) {
  tensor.set_data_type(static_cast<std::int32_t>(value.type.dtype));
  tensor.mutable_dims()->Assign(value.type.dims.begin(), value.type.dims.end());
  tensor.set_data_location(pb::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, std::string text) {
    pb::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(std::move(text));
  };
  add("location", data.name);
  add("offset", "0");
  add("length", std::to_string(data.bytes));
}

Result<std::optional<domain::DataFile>> write_tensor(const Constant& value, pb::TensorProto& tensor,
                                                     const base::BlobFolder& blobs) {
  if (!goes_to_file(value)) {
    write_constant(value, tensor);
    return std::optional<domain::DataFile>();
  }
  auto data = store_data(value, blobs);
  if (!data) return fail(std::move(data.error()));
  refer_to_data(value, *data, tensor);
  return std::optional<domain::DataFile>(std::move(*data));
}

}  // namespace layerfarm::worker::onnx
