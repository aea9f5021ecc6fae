#include "worker/onnx/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace layerfarm::worker::onnx {

base::Result<std::shared_ptr<const MappedFile>> MappedFile::open(
    const std::filesystem::path& path) {
  // Not blocking: a pipe of that name must not hold us up.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const auto code = errno == ENOENT || errno == ENOTDIR ? base::ErrorCode::NotFound
                                                          : base::ErrorCode::InvalidInput;
    return base::fail(code, std::string("cannot be read: ") + std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return base::fail(base::ErrorCode::InvalidInput,
                      S_ISDIR(info.st_mode) ? "is a folder, not a file" : "is not a regular file");
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const int saved = errno;
      ::close(fd);
      return base::fail(base::ErrorCode::Internal,
                        std::string("cannot be mapped into memory: ") + std::strerror(saved));
    }
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<char*>(data_), size_);
}

}  // namespace layerfarm::worker::onnx
