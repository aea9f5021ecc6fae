#include "worker/cache/materialise.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::worker::cache;
namespace fs = std::filesystem;

namespace {
struct Place {
  base::ScratchFolder folder = *base::ScratchFolder::make(fs::temp_directory_path(), "place");
  base::BlobFolder blobs{folder.path() / "blobs"};
};
}  // namespace

TEST_CASE("a module and its data files lie together under the names that it refers to") {
  Place place;
  domain::LayerModule module;
  module.blob = place.blobs.put("the module").value();
  module.data = {{.name = "weights.bin", .blob = place.blobs.put("weights").value(), .bytes = 7}};
  const Placed placed = place_module(place.blobs, module, place.folder.path() / "a" / "b", "layer");
  REQUIRE(placed.ok());
  CHECK(placed.module == place.folder.path() / "a" / "b" / "layer.onnx");
  CHECK(base::read_file(placed.module).value() == "the module");
  CHECK(base::read_file(place.folder.path() / "a" / "b" / "weights.bin").value() == "weights");
  CHECK(place_module(place.blobs, module, place.folder.path() / "a" / "b", "layer")
            .ok());  // again does no harm
}

TEST_CASE("pruned blobs are named, all of them") {
  Place place;
  domain::LayerModule module;
  module.blob = base::digest_of("gone");
  module.data = {{.name = "w", .blob = base::digest_of("gone too"), .bytes = 1}};
  const Placed placed = place_module(place.blobs, module, place.folder.path() / "x", "layer");
  CHECK(placed.lost ==
        std::vector<base::Digest>{base::digest_of("gone"), base::digest_of("gone too")});
  const base::Digest there = place.blobs.put("there").value();
  CHECK(missing_blobs(place.blobs, {there, base::digest_of("gone")}) ==
        std::vector<base::Digest>{base::digest_of("gone")});
}

TEST_CASE("an artifact lies beside its data files under the name that its tool wants") {
  Place place;
  domain::Artifact artifact;
  artifact.blob = place.blobs.put("compiled").value();
  artifact.data = {{.name = "context.bin", .blob = place.blobs.put("binary").value(), .bytes = 6}};
  const fs::path folder = place.folder.path() / "run";
  const Placed placed = place_artifact(place.blobs, artifact, folder, "model.onnx");
  REQUIRE(placed.ok());
  CHECK(placed.module == folder / "model.onnx");
  CHECK(base::read_file(placed.module).value() == "compiled");
  CHECK(base::read_file(folder / "context.bin").value() == "binary");
  artifact.blob = base::digest_of("gone");
  CHECK(place_artifact(place.blobs, artifact, place.folder.path() / "other", "model.onnx").lost ==
        std::vector<base::Digest>{base::digest_of("gone")});
}

TEST_CASE("a large placed file shares its bytes with the blob, a small one is a copy") {
  Place place;
  domain::LayerModule module;
  module.blob = place.blobs.put(std::string(2 << 20, 'c')).value();
  const Placed placed = place_module(place.blobs, module, place.folder.path() / "z", "layer");
  REQUIRE(placed.ok());
  CHECK(fs::equivalent(placed.module, place.blobs.path(module.blob)));
  CHECK(fs::hard_link_count(placed.module) == 2);
  module.blob = place.blobs.put("small").value();
  const Placed small = place_module(place.blobs, module, place.folder.path() / "s", "layer");
  REQUIRE(small.ok());
  CHECK(fs::hard_link_count(small.module) == 1);
}

TEST_CASE("a data file cannot leave its folder") {
  Place place;
  for (const std::string name : {"../x", "/etc/x", "a/b", "", ".hidden", "layer.onnx"}) {
    domain::LayerModule module;
    module.blob = place.blobs.put("m").value();
    module.data = {{.name = name, .blob = module.blob, .bytes = 1}};
    CHECK_FALSE(place_module(place.blobs, module, place.folder.path() / "y", "layer").ok());
  }
}

TEST_CASE("a folder that cannot be made is a problem, not a crash") {
  Place place;
  domain::LayerModule module;
  module.blob = place.blobs.put("m").value();
  CHECK_FALSE(place_module(place.blobs, module, "/proc/none/x", "layer").problem.empty());
}
