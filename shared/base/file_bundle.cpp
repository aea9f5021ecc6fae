#include "shared/base/file_bundle.h"

#include <cstdint>
#include <filesystem>

namespace layerfarm::base {
namespace {

template <typename Number>
void put(Bytes& out, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    out += static_cast<char>(static_cast<unsigned char>(number >> (8 * i)));
}

template <typename Number>
bool take(BytesView& bytes, Number& number) {
  if (bytes.size() < sizeof number) return false;
  number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  bytes.remove_prefix(sizeof number);
  return true;
}

bool take(BytesView& bytes, std::uint64_t length, std::string& text) {
  if (bytes.size() < length) return false;
  text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return true;
}

/// A worker may be anybody: what it sends decides content, never where something is written.
bool stays_inside(const std::string& path) {
  const std::filesystem::path parts(path);
  if (path.empty() || parts.is_absolute() || path.find('\0') != std::string::npos) return false;
  for (const auto& part : parts) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

}  // namespace

Bytes encode_bundle(const std::vector<BundledFile>& files) {
  Bytes out;
  for (const BundledFile& file : files) {
    put(out, static_cast<std::uint32_t>(file.path.size()));
    put(out, static_cast<std::uint64_t>(file.content.size()));
    out += file.path;
    out += file.content;
  }
  return out;
}

Result<std::vector<BundledFile>> decode_bundle(BytesView bytes) {
  std::vector<BundledFile> out;
  while (!bytes.empty()) {
    std::uint32_t path_length = 0;
    std::uint64_t content_length = 0;
    BundledFile file;
    if (!take(bytes, path_length) || !take(bytes, content_length) ||
        !take(bytes, path_length, file.path) || !take(bytes, content_length, file.content))
      return fail(ErrorCode::Corrupt, "a bundle of files ends early");
    if (!stays_inside(file.path))
      return fail(ErrorCode::Corrupt, "a bundle of files names the path '" + file.path + "'");
    out.push_back(std::move(file));
  }
  return out;
}

}  // namespace layerfarm::base
