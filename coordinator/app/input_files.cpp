#include "coordinator/app/input_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "shared/base/digest.h"
#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

namespace {

using Names = std::optional<std::vector<std::string>>;

std::uint32_t number(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < size; ++i)
    out |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return out;
}

std::string read_at(std::ifstream& file, std::uint64_t from, std::uint64_t size) {
  std::string out(size, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(from));
  file.read(out.data(), static_cast<std::streamsize>(size));
  out.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return out;
}

/// Names of an archive's members, from the directory at its end (a zip file without zip64).
Names npz_names(const fs::path& path) {
  constexpr std::uint64_t kEndBytes = 22;
  constexpr std::uint64_t kLongestComment = 0xffff;
  constexpr std::size_t kEntryBytes = 46;
  constexpr std::uint32_t kMostDirectory = 64U << 20;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file || size < kEndBytes) return std::nullopt;
  const std::uint64_t tail_size = std::min(size, kEndBytes + kLongestComment);
  const std::string tail = read_at(file, size - tail_size, tail_size);
  const std::size_t end = tail.rfind("PK\5\6");
  if (end == std::string::npos || tail.size() - end < kEndBytes) return std::nullopt;
  const std::uint32_t bytes = number(tail, end + 12, 4);
  const std::uint32_t offset = number(tail, end + 16, 4);
  if (offset == UINT32_MAX || bytes > kMostDirectory || std::uint64_t{offset} + bytes > size)
    return std::nullopt;
  const std::string directory = read_at(file, offset, bytes);
  std::vector<std::string> out;
  for (std::size_t at = 0; at < directory.size();) {
    if (directory.size() - at < kEntryBytes || directory.compare(at, 4, "PK\1\2") != 0)
      return std::nullopt;
    const std::size_t name = number(directory, at + 28, 2);
    const std::size_t rest = number(directory, at + 30, 2) + number(directory, at + 32, 2);
    if (directory.size() - at - kEntryBytes < name + rest) return std::nullopt;
    std::string member = directory.substr(at + kEntryBytes, name);
    if (member.ends_with(".npy")) member.resize(member.size() - 4);
    out.push_back(std::move(member));
    at += kEntryBytes + name + rest;
  }
  return out;
}

std::optional<std::uint64_t> varint(std::ifstream& file) {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const int byte = file.get();
    if (byte == std::ifstream::traits_type::eof()) return std::nullopt;
    out |= (static_cast<std::uint64_t>(byte) & 0x7f) << shift;
    if ((byte & 0x80) == 0) return out;
  }
  return std::nullopt;
}

/// The name that a tensor's file gives it (TensorProto, field 8), else the file's stem.
Names pb_names(const fs::path& path) {
  constexpr std::uint64_t kName = 8;
  constexpr std::uint64_t kLongestName = 1 << 20;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return std::nullopt;
  std::string name;
  while (file.peek() != std::ifstream::traits_type::eof()) {
    const auto tag = varint(file);
    if (!tag) return std::nullopt;
    std::uint64_t skipped = 0;
    switch (*tag & 7) {
      case 0:
        if (!varint(file)) return std::nullopt;
        break;
      case 1:
        skipped = 8;
        break;
      case 2: {
        const auto length = varint(file);
        if (!length || *length > size) return std::nullopt;
        skipped = *length;
        if (*tag >> 3 != kName) break;
        if (skipped > kLongestName) return std::nullopt;
        name.assign(skipped, '\0');
        if (!file.read(name.data(), static_cast<std::streamsize>(skipped))) return std::nullopt;
        skipped = 0;
        break;
      }
      case 5:
        skipped = 4;
        break;
      default:
        return std::nullopt;
    }
    if (skipped > 0) file.seekg(static_cast<std::streamoff>(skipped), std::ios::cur);
    if (!file || static_cast<std::uint64_t>(file.tellg()) > size) return std::nullopt;
  }
  return std::vector<std::string>{name.empty() ? path.stem().string() : name};
}

Names names_in(const fs::path& path) {
  if (path.extension() == ".npz") return npz_names(path);
  if (path.extension() == ".pb") return pb_names(path);
  return std::vector<std::string>{path.stem().string()};
}

/// The name as a file can have it; workers look for both.
std::string file_name_of(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) {
        return !((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                 c == '.' || c == '_' || c == '-');
      },
      '_');
  return name;
}

}  // namespace

Result<InputFiles> find_inputs(const std::string& folder) {
  InputFiles out;
  if (folder.empty()) return out;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return fail(ErrorCode::NotFound, "--inputs: no folder " + folder);
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".npz" || extension == ".npy" || extension == ".pb")
      files.insert(entry.path());
  }
  if (error)
    return fail(ErrorCode::InvalidInput,
                "--inputs: cannot read the folder " + folder + ": " + error.message());
  if (files.empty())
    return fail(ErrorCode::NotFound, "--inputs: " + folder + " holds no .npz, .npy or .pb file");
  base::Hasher hasher("layerfarm.inputs.1");
  std::set<std::string> names;
  for (const fs::path& file : files) {
    auto digest = base::digest_of_file(file.string());
    if (!digest) return fail(digest.error());
    hasher.add(file.filename().string()).add(*digest);
    const Names found = names_in(file);
    out.all_known = out.all_known && found.has_value();
    if (found) names.insert(found->begin(), found->end());
  }
  out.names.assign(names.begin(), names.end());
  out.set.folder = hasher.finish();
  out.set.path = fs::absolute(folder).lexically_normal().string();
  return out;
}

InputUse input_use(const InputFiles& files, const domain::ModelAnalysis& model) {
  const std::set<std::string> there(files.names.begin(), files.names.end());
  std::set<std::string> made;  // by layers: what no layer makes is an input of the model
  for (const domain::Layer& layer : model.layers)
    made.insert(layer.output_names.begin(), layer.output_names.end());
  InputUse out;
  std::set<std::string> used;
  std::set<std::string> missing;
  for (const domain::Layer& layer : model.layers) {
    for (const std::string& name : layer.input_names) {
      const auto plain = there.find(name);
      const auto found = plain != there.end() ? plain : there.find(file_name_of(name));
      ++(found != there.end() ? out.taken : out.drawn);
      if (found != there.end()) used.insert(*found);
      if (found == there.end() && !made.contains(name)) missing.insert(name);
    }
  }
  out.used.assign(used.begin(), used.end());
  out.missing.assign(missing.begin(), missing.end());
  return out;
}

std::string input_use_text(const InputUse& use) {
  std::string out = fmt::format("{} of {} layer inputs come from {} array(s) of --inputs",
                                use.taken, use.taken + use.drawn, use.used.size());
  if (use.drawn > 0) out += ", the others are random";
  if (!use.missing.empty())
    out += " (model inputs without an array: " + base::join(use.missing) + ")";
  return out;
}

}  // namespace layerfarm::coordinator::app
