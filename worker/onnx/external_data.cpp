#include "worker/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace layerfarm::worker::onnx {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;

std::optional<std::uint64_t> read_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  const auto [folder_end, ignored] =
      std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return folder_end == folder.end();
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> ExternalData::open(const std::string& location) {
  if (const auto found = open_.find(location); found != open_.end()) return found->second;
  const std::string text = "its external data file '" + location + "' ";
  const fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    return fail(ErrorCode::InvalidInput, "has external data without a file name");
  if (relative.is_absolute() ||
      std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return fail(ErrorCode::InvalidInput,
                text + "lies outside the model's folder, which is refused");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  const fs::path file = fs::weakly_canonical(folder / relative, error);
  if (error || !is_inside(file, folder)) {
    return fail(
        ErrorCode::InvalidInput,
        text + "is a link to outside the model's folder, which is refused; put a copy there");
  }
  auto mapped = MappedFile::open(file);
  if (!mapped && mapped.error().code == ErrorCode::NotFound) {
    return fail(ErrorCode::InvalidInput, text + "is missing; it must lie beside the model");
  }
  if (!mapped) return fail(ErrorCode::InvalidInput, text + mapped.error().message);
  open_.emplace(location, *mapped);
  return *mapped;
}

Result<Constant> ExternalData::read(const pb::TensorProto& tensor) {
  std::string location;
  std::optional<std::uint64_t> offset = 0;
  std::optional<std::uint64_t> length;
  bool numbers = true;
  for (const pb::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset")
      numbers = numbers && (offset = read_number(entry.value())).has_value();
    if (entry.key() == "length")
      numbers = numbers && (length = read_number(entry.value())).has_value();
  }
  Constant out;
  out.type = {static_cast<domain::DType>(tensor.data_type()),
              {tensor.dims().begin(), tensor.dims().end()}};
  const std::string name = "the constant '" + tensor.name() + "' ";
  const auto size = raw_bytes(out.type.dtype, out.type.dims);
  if (!numbers)
    return fail(ErrorCode::InvalidInput,
                name + "has an offset or length in external data that is no number");
  if (!size || *size > kMaxTensorBytes)
    return fail(ErrorCode::InvalidInput, name + "in external data has an impossible type or shape");
  if (length && *length != *size) {
    return fail(ErrorCode::InvalidInput, name + "has " + std::to_string(*length) +
                                             " bytes of external data, its shape and type need " +
                                             std::to_string(*size));
  }
  auto file = open(location);
  if (!file) return fail(std::move(file.error()));
  const base::BytesView all = (*file)->bytes();
  if (*offset > all.size() || *size > all.size() - *offset) {
    return fail(ErrorCode::InvalidInput, "its external data file '" + location +
                                             "' is too short: " + name + "ends at byte " +
                                             std::to_string(*offset + *size) + ", the file has " +
                                             std::to_string(all.size()));
  }
  out.bytes = all.substr(*offset, *size);
  out.keeper = *file;
  return out;
}

std::vector<domain::ReadFile> ExternalData::files() const {
  std::vector<domain::ReadFile> out;
  for (const auto& [location, file] : open_)
    out.push_back({location, base::digest_of(file->bytes()), file->bytes().size()});
  return out;
}

}  // namespace layerfarm::worker::onnx
