#include "coordinator/app/model_list.h"

#include <doctest/doctest.h>

#include <fstream>

#include "shared/base/files.h"

using namespace layerfarm;
using coordinator::app::expand_models;

namespace {

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "layerfarm-test");
  std::string file(const std::string& name) {
    const auto path = scratch.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path.string();
  }
};

std::string refusal(const std::string& pattern) {
  const auto models = expand_models({pattern});
  return models.has_value() ? "" : models.error().text();
}

}  // namespace

TEST_CASE("globs are expanded in order and a file given twice comes once") {
  Folder folder;
  folder.file("b.onnx");
  folder.file("a.onnx");
  const auto models = expand_models(
      {(folder.scratch.path() / "*.onnx").string(), (folder.scratch.path() / "a.onnx").string()});
  REQUIRE(models.has_value());
  REQUIRE(models->size() == 2);
  CHECK((*models)[0].name == "a");
  CHECK((*models)[1].name == "b");
}

TEST_CASE("the name is the file name without its last extension") {
  Folder folder;
  CHECK(expand_models({folder.file("net1.0-12.onnx")})->front().name == "net1.0-12");
}

TEST_CASE("a file whose name looks like a glob is taken as it is") {
  Folder folder;
  folder.file("a1.onnx");
  const auto models = expand_models({folder.file("a[1].onnx")});
  REQUIRE(models.has_value());
  REQUIRE(models->size() == 1);
  CHECK((*models)[0].name == "a[1]");
}

TEST_CASE(
    "equal names are told apart by the folder below the common parent, others stay where they "
    "are") {
  Folder folder;
  const auto models = expand_models(
      {folder.file("x/net.onnx"), folder.file("y/z/net.onnx"), folder.file("y/other.onnx")});
  REQUIRE(models.has_value());
  CHECK((*models)[0].folder == "x");
  CHECK((*models)[1].folder == "y/z");
  CHECK((*models)[2].folder == "");
}

TEST_CASE("missing files, folders and refused types are named") {
  Folder folder;
  CHECK(refusal((folder.scratch.path() / "none.onnx").string()).find("Model not found") !=
        std::string::npos);
  CHECK(refusal((folder.scratch.path() / "*.onnx").string()).find("no file matches") !=
        std::string::npos);
  CHECK(refusal(folder.scratch.path().string()).find("folder") != std::string::npos);
  CHECK(refusal(folder.file("m.tflite")).find("TFLite") != std::string::npos);
  CHECK(refusal(folder.file("m.PTH")).find("Torch") != std::string::npos);
}

TEST_CASE("a model that is called as another's files has a folder of its own") {
  Folder folder;
  const auto models =
      expand_models({folder.file("x.onnx"), folder.file("x_compiler.onnx"), folder.file("y.onnx")});
  REQUIRE(models.has_value());
  REQUIRE(models->size() == 3);
  CHECK((*models)[0].folder.empty());
  CHECK((*models)[1].folder == "x_compiler.onnx");
  CHECK((*models)[2].folder.empty());
  const auto turned = expand_models({folder.file("x_mac_debug.onnx"), folder.file("x.onnx")});
  REQUIRE(turned.has_value());
  CHECK((*turned)[1].folder == "x.onnx");
}
