#include "coordinator/app/input_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::app;
namespace fs = std::filesystem;

namespace {

struct Arrays {
  base::ScratchFolder scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "arrays");
  void file(const std::string& name, const std::string& bytes) const {
    std::ofstream(scratch.path() / name, std::ios::binary) << bytes;
  }
  [[nodiscard]] InputFiles find() const {
    auto found = find_inputs(scratch.path().string());
    REQUIRE_MESSAGE(found.has_value(), found.error().text());
    return *found;
  }
};

std::string little(std::uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

/// The directory of a zip file, with nothing before it.
std::string zip_of(const std::vector<std::string>& members) {
  std::string directory;
  for (const std::string& name : members) {
    directory += "PK\1\2" + std::string(24, '\0') +
                 little(static_cast<std::uint32_t>(name.size()), 2) + std::string(16, '\0') + name;
  }
  const auto count = static_cast<std::uint32_t>(members.size());
  return directory + "PK\5\6" + std::string(4, '\0') + little(count, 2) + little(count, 2) +
         little(static_cast<std::uint32_t>(directory.size()), 4) + little(0, 4) + little(0, 2);
}

domain::ModelAnalysis model() {
  domain::ModelAnalysis out;
  out.layers.resize(2);
  out.layers[0].input_names = {"x:0", "mask"};
  out.layers[0].output_names = {"h"};
  out.layers[1].input_names = {"h", "x:0"};
  out.layers[1].output_names = {"y"};
  return out;
}

}  // namespace

TEST_CASE("names come from an archive's members, a tensor's own name, or a file's stem") {
  const Arrays arrays;
  arrays.file("image.npy", "whatever");
  arrays.file("two.npz", zip_of({"a.npy", "b/c.npy"}));
  // dims, data_type, name = "own", raw_data
  arrays.file("named.pb", std::string("\x08\x02\x10\x01\x42\x03own\x4a\x04", 11) + "....");
  arrays.file("nameless.pb", std::string("\x10\x01", 2));
  arrays.file("readme.txt", "no array");
  const InputFiles found = arrays.find();
  CHECK(found.names == std::vector<std::string>{"a", "b/c", "image", "nameless", "own"});
  CHECK(found.all_known);
  CHECK_FALSE(found.set.folder.is_zero());
}

TEST_CASE("files whose names cannot be read make nothing known, and end nothing") {
  for (const std::string& bytes :
       {std::string(), std::string("PK\5\6"), zip_of({"a"}).substr(0, 60), std::string(100, 'x'),
        "PK\5\6" + std::string(18, '\xff')}) {
    const Arrays arrays;
    arrays.file("x.npz", bytes);
    CHECK_FALSE(arrays.find().all_known);
  }
  for (const std::string& bytes :
       {std::string("\x42\x7f", 2), std::string("\x47", 1), std::string(12, '\xff')}) {
    const Arrays arrays;
    arrays.file("x.pb", bytes);
    CHECK_FALSE(arrays.find().all_known);
  }
  CHECK(find_inputs("").value().names.empty());
  CHECK_FALSE(find_inputs("/no/such/folder").has_value());
}

TEST_CASE("what a model takes is told in numbers, and what it asks for and does not find by name") {
  InputFiles files;
  files.names = {"h", "other", "x_0"};  // "x:0" cannot be a file's name everywhere
  const InputUse use = input_use(files, model());
  CHECK(use.used == std::vector<std::string>{"h", "x_0"});
  CHECK(use.missing == std::vector<std::string>{"mask"});
  CHECK(input_use_text(use) ==
        "3 of 4 layer inputs come from 2 array(s) of --inputs, the others are random (model inputs "
        "without an array: mask)");
  files.names = {"wrong"};
  const InputUse none = input_use(files, model());
  CHECK(none.used.empty());
  CHECK(none.missing == std::vector<std::string>{"mask", "x:0"});
}
