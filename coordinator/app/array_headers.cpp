#include "coordinator/app/array_headers.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "shared/domain/dtype.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;
using domain::DType;

namespace {

using Arrays = std::optional<std::vector<ArrayHeader>>;

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

/// Takes what stands between `open` and the next `close` after the key; empty when it is not there.
std::string_view field(std::string_view header, std::string_view key, char open, char close) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::size_t from = header.find_first_not_of(": ", at + key.size());
  if (from == std::string_view::npos || header[from] != open) return {};
  const std::size_t to = header.find(close, ++from);
  return to == std::string_view::npos ? std::string_view() : header.substr(from, to - from);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

struct NpyType {
  std::string_view text;
  DType type;
};
constexpr NpyType kNpyTypes[] = {
    {"<f4", DType::Float32},   {"<f8", DType::Float64},    {"<f2", DType::Float16},
    {"|i1", DType::Int8},      {"|u1", DType::UInt8},      {"<i2", DType::Int16},
    {"<u2", DType::UInt16},    {"<i4", DType::Int32},      {"<u4", DType::UInt32},
    {"<i8", DType::Int64},     {"<u8", DType::UInt64},     {"|b1", DType::Bool},
    {"<c8", DType::Complex64}, {"<c16", DType::Complex128}};

/// Most bytes of an array's file that are looked at: all that its header may take.
constexpr std::uint64_t kFrontBytes = (64U << 10) + 12;

/// Type and shape from the text at the front of NumPy's format; unknown where it is another one.
void read_npy(const std::string& front, ArrayHeader& out) {
  if (front.size() < 12 || !front.starts_with("\x93NUMPY")) return;
  const bool short_form = front[6] == 1;
  const std::uint64_t size = number(front, 8, short_form ? 2 : 4);
  const std::size_t begin = short_form ? 10 : 12;
  if (size > front.size() - begin) return;
  const std::string header = front.substr(begin, size);
  const std::string dtype(field(header, "'descr'", '\'', '\''));
  if (dtype.empty() || header.find("'shape'") == std::string::npos) return;
  std::vector<std::int64_t> dims;
  std::string_view shape = field(header, "'shape'", '(', ')');
  while (!shape.empty()) {
    const std::size_t comma = std::min(shape.find(','), shape.size());
    std::string_view part = shape.substr(0, comma);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (!part.empty()) {
      const auto dim = whole_number(part);
      if (!dim) return;
      dims.push_back(*dim);
    }
    shape.remove_prefix(std::min(comma + 1, shape.size()));
  }
  const auto* const known = std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes),
                                         [&](const NpyType& one) { return one.text == dtype; });
  if (known != std::end(kNpyTypes)) {
    out.type = known->type;
    out.dtype = domain::dtype_name(known->type);
  } else if (dtype.starts_with("|V") && whole_number(dtype.substr(2))) {
    out.nameless_bytes = static_cast<std::size_t>(*whole_number(dtype.substr(2)));
    out.dtype = dtype;
  } else {
    out.dtype = dtype;
  }
  out.dims = std::move(dims);
}

/// The first bytes of what was compressed by zip's usual method; fewer where it is damaged.
std::string inflated_front(std::string packed) {
  std::string out(kFrontBytes, '\0');
  z_stream stream{};
  constexpr int kRawDeflate = -MAX_WBITS;  // zip has a frame of its own
  if (::inflateInit2(&stream, kRawDeflate) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::inflate(&stream, Z_SYNC_FLUSH);
  out.resize(out.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return out;
}

/// A member begins behind its own header, whose extra part has a length of its own.
void read_member(std::ifstream& file, std::uint64_t offset, bool packed, ArrayHeader& out) {
  constexpr std::uint64_t kHeaderBytes = 30;
  const std::string header = read_at(file, offset, kHeaderBytes);
  if (header.size() < kHeaderBytes || !header.starts_with("PK\3\4")) return;
  std::string front = read_at(
      file, offset + kHeaderBytes + number(header, 26, 2) + number(header, 28, 2), kFrontBytes);
  read_npy(packed ? inflated_front(std::move(front)) : front, out);
}

/// An archive's members, from the directory at its end (a zip file without zip64).
Arrays npz_arrays(const fs::path& path) {
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
  std::vector<ArrayHeader> out;
  for (std::size_t at = 0; at < directory.size();) {
    if (directory.size() - at < kEntryBytes || directory.compare(at, 4, "PK\1\2") != 0)
      return std::nullopt;
    const std::size_t name = number(directory, at + 28, 2);
    const std::size_t rest = number(directory, at + 30, 2) + number(directory, at + 32, 2);
    if (directory.size() - at - kEntryBytes < name + rest) return std::nullopt;
    std::string member = directory.substr(at + kEntryBytes, name);
    if (member.ends_with(".npy")) member.resize(member.size() - 4);
    ArrayHeader& array = out.emplace_back();
    array.name = std::move(member);
    constexpr std::uint32_t kStored = 0;
    constexpr std::uint32_t kDeflated = 8;
    const std::uint32_t method = number(directory, at + 10, 2);
    if (method == kStored || method == kDeflated)
      read_member(file, number(directory, at + 42, 4), method == kDeflated, array);
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

/// A tensor's file (TensorProto): dims are field 1, the type field 2, the name field 8.
Arrays pb_arrays(const fs::path& path) {
  constexpr std::uint64_t kDims = 1;
  constexpr std::uint64_t kType = 2;
  constexpr std::uint64_t kName = 8;
  constexpr std::uint64_t kLongestField = 1 << 20;
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return std::nullopt;
  ArrayHeader out;
  const auto add_dim = [&out](std::uint64_t dim) {
    out.dims.push_back(static_cast<std::int64_t>(dim));
  };
  while (file.peek() != std::ifstream::traits_type::eof()) {
    const auto tag = varint(file);
    if (!tag) return std::nullopt;
    const std::uint64_t field = *tag >> 3;
    std::uint64_t skipped = 0;
    switch (*tag & 7) {
      case 0: {
        const auto value = varint(file);
        if (!value) return std::nullopt;
        if (field == kDims) add_dim(*value);
        if (field == kType) out.type = static_cast<DType>(*value);
        break;
      }
      case 1:
        skipped = 8;
        break;
      case 2: {
        const auto length = varint(file);
        if (!length || *length > size) return std::nullopt;
        skipped = *length;
        if (field != kName && field != kDims) break;
        if (skipped > kLongestField) return std::nullopt;
        const auto end = file.tellg() + static_cast<std::streamoff>(skipped);
        if (field == kName) {
          out.name.assign(skipped, '\0');
          file.read(out.name.data(), static_cast<std::streamsize>(skipped));
        }
        while (field == kDims && file && file.tellg() < end) {
          const auto dim = varint(file);
          if (!dim) return std::nullopt;
          add_dim(*dim);
        }
        if (!file || file.tellg() != end) return std::nullopt;
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
  if (out.name.empty()) out.name = path.stem().string();
  if (domain::dtype_size(out.type) > 0) out.dtype = domain::dtype_name(out.type);
  return std::vector<ArrayHeader>{std::move(out)};
}

Arrays npy_array(const fs::path& path) {
  ArrayHeader out;
  out.name = path.stem().string();
  std::ifstream file(path, std::ios::binary);
  read_npy(read_at(file, 0, kFrontBytes), out);
  return std::vector<ArrayHeader>{std::move(out)};
}

}  // namespace

bool ArrayHeader::has_type(DType wanted) const {
  return nameless_bytes > 0 ? nameless_bytes == domain::dtype_size(wanted) : type == wanted;
}

bool ArrayHeader::fits(const domain::TensorType& wanted) const {
  return has_type(wanted.dtype) && dims == wanted.dims;
}

Arrays arrays_in(const fs::path& path) {
  if (path.extension() == ".npz") return npz_arrays(path);
  if (path.extension() == ".pb") return pb_arrays(path);
  return npy_array(path);
}

}  // namespace layerfarm::coordinator::app
