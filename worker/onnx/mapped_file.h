// MappedFile: a file's bytes without a copy of them in memory.
#pragma once

#include <filesystem>
#include <memory>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

namespace layerfarm::worker::onnx {

class MappedFile {
 public:
  /// NotFound when it does not exist, InvalidInput for what is no regular file.
  static base::Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] base::BytesView bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, std::size_t size) : data_(data), size_(size) {}
  const char* data_;
  std::size_t size_;
};

}  // namespace layerfarm::worker::onnx
