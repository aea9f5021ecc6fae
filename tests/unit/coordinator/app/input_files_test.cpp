#include "coordinator/app/input_files.h"

#include <doctest/doctest.h>
#include <zlib.h>

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

/// A .npy file: type as NumPy writes it, shape as in Python.
std::string npy(const std::string& dtype, const std::string& shape) {
  const std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  return "\x93NUMPY" + std::string("\1\0", 2) +
         little(static_cast<std::uint32_t>(header.size()), 2) + header + "data";
}

/// A zip file of one member, stored as it is or said to be compressed.
std::string zip_with(const std::string& name, const std::string& content, int method) {
  const auto size = static_cast<std::uint32_t>(name.size());
  const std::string local =
      "PK\3\4" + std::string(22, '\0') + little(size, 2) + little(4, 2) + name + "more" + content;
  const std::string directory =
      "PK\1\2" + std::string(6, '\0') + little(static_cast<std::uint32_t>(method), 2) +
      std::string(16, '\0') + little(size, 2) + std::string(16, '\0') + name;
  return local + directory + "PK\5\6" + std::string(4, '\0') + little(1, 2) + little(1, 2) +
         little(static_cast<std::uint32_t>(directory.size()), 4) +
         little(static_cast<std::uint32_t>(local.size()), 4) + little(0, 2);
}

/// As zip compresses a member.
std::string packed(const std::string& content) {
  std::string out(content.size() + 64, '\0');
  z_stream stream{};
  REQUIRE(::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY) == Z_OK);
  std::string in = content;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(::deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
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

TEST_CASE("types and shapes come from headers, where those can be read") {
  const Arrays arrays;
  arrays.file("a.npy", npy("<f8", "(1, 4)"));
  arrays.file("b.npy", npy("|V2", "(3,)"));
  arrays.file("c.npy", npy(">f4", "()"));
  arrays.file("cut.npy", npy("<f8", "(1, 4)").substr(0, 30));
  arrays.file("n.npz", zip_with("in.npy", npy("<i4", "(2, 0)"), 0));
  arrays.file("p.npz", zip_with("packed.npy", packed(npy("<i4", "(2,)")), 8));
  arrays.file("broken.npz", zip_with("broken.npy", npy("<i4", "(2,)"), 8));
  arrays.file("odd.npz", zip_with("odd.npy", npy("<i4", "(2,)"), 12));
  // dims 2 alone and 3, 4 packed, data_type int64
  arrays.file("t.pb", std::string("\x08\x02\x0a\x02\x03\x04\x10\x07", 8));
  const InputFiles found = arrays.find();
  CHECK(found.all_known);
  CHECK(found.names ==
        std::vector<std::string>{"a", "b", "broken", "c", "cut", "in", "odd", "packed", "t"});
  const auto type = [&](const std::string& name) {
    const ArrayHeader& header = found.arrays.at(name).header;
    std::string out = header.dtype;
    for (const std::int64_t dim : header.dims) out += " " + std::to_string(dim);
    return out;
  };
  // Nobody knows what is in those that are cut, damaged or packed in another way.
  CHECK(found.arrays.size() == 6);
  CHECK(type("packed") == "int32 2");
  CHECK(type("a") == "float64 1 4");
  CHECK(type("b") == "|V2 3");
  CHECK(type("c") == ">f4");
  CHECK(type("in") == "int32 2 0");
  CHECK(type("t") == "int64 2 3 4");
  CHECK(found.arrays.at("in").file == "n.npz");
  const ArrayHeader& nameless = found.arrays.at("b").header;
  CHECK(nameless.fits({domain::DType::BFloat16, {3}}));
  CHECK_FALSE(nameless.fits({domain::DType::Float32, {3}}));
  CHECK_FALSE(found.arrays.at("c").header.fits({domain::DType::Float32, {}}));
}

TEST_CASE(
    "an array of another type or shape than each layer takes is a misfit that says what to do") {
  const Arrays arrays;
  arrays.file("x_0.npy", npy("<f8", "(1, 4)"));
  arrays.file("h.npy", npy("<f4", "(1, 4)"));
  arrays.file("mask.npy", npy("<f4", "(2, 4)"));
  domain::ModelAnalysis net = model();
  const domain::TensorType wanted{domain::DType::Float32, {1, 4}};
  net.layers[0].id = "Add_h";
  net.layers[0].inputs = {{.type = wanted}, {.type = wanted}};
  net.layers[1].id = "Mul_y";
  net.layers[1].inputs = {{.type = wanted}, {.type = wanted}};
  const InputUse use = input_use(arrays.find(), net);
  CHECK(use.partly.empty());
  REQUIRE(use.misfits.size() == 2);
  CHECK(
      use.misfits[0] ==
      "the array 'mask' of mask.npy is float32[2,4], but the input 'mask' (of Add_h) is "
      "float32[1,4]; give it that shape (an open dim of the model is 1 where --dim says nothing)");
  CHECK(use.misfits[1] ==
        "the array 'x_0' of x_0.npy is float64[1,4], but the input 'x:0' (of Add_h) is "
        "float32[1,4]; save it as float32, with NumPy array.astype('float32')");
  // A quantized layer and a float one may take one value in two types.
  net.layers[1].inputs[1].type.dtype = domain::DType::Float64;
  CHECK(input_use(arrays.find(), net).misfits.size() == 1);
  CHECK(input_use(arrays.find(), net).partly.size() == 1);
  // What is not known of a layer that cannot be tested says nothing.
  net.layers[0].problem = "the shape of input 'mask' is unknown";
  CHECK(input_use(arrays.find(), net).misfits.empty());
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
