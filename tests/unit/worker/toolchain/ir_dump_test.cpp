#include "worker/toolchain/ir_dump.h"

#include <doctest/doctest.h>

#include "shared/base/file_bundle.h"
#include "shared/base/files.h"
#include "tests/support/worker/toolchain_bench.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;

void put(const test::ToolBench& bench, const std::string& name, const std::string& text) {
  fs::create_directories((bench.step.scratch / name).parent_path());
  REQUIRE(base::write_file_atomically(bench.step.scratch / name, text, base::Sync::No));
}

std::vector<base::BundledFile> kept(const test::ToolBench& bench, const base::Digest& blob) {
  const auto bytes = bench.blobs.get(blob);
  REQUIRE(bytes);
  const auto files = base::decode_bundle(*bytes);
  REQUIRE(files);
  return *files;
}

TEST_CASE("a dump is the files that are named, folders with all that is below, in one order") {
  test::ToolBench bench;
  put(bench, "phases/b.mlir", "b");
  put(bench, "phases/a.mlir", "a");
  put(bench, "debug/ir/x/1.mlir", "1");
  put(bench, "module.mlir", "m");
  put(bench, "module.vmfb", "not asked for");
  const auto blob = keep_ir_dump({"module.mlir", "debug", "phases", "not-there"}, bench.step);
  REQUIRE(blob);
  CHECK(kept(bench, *blob) == std::vector<base::BundledFile>{{"debug/ir/x/1.mlir", "1"},
                                                             {"module.mlir", "m"},
                                                             {"phases/a.mlir", "a"},
                                                             {"phases/b.mlir", "b"}});
}

TEST_CASE("what is beyond the bound is named instead") {
  test::ToolBench bench;
  put(bench, "phases/a", "aaaa");
  put(bench, "phases/b", "bbbb");
  put(bench, "phases/c", "c");
  const auto blob = keep_ir_dump({"phases"}, bench.step, 6);
  REQUIRE(blob);
  CHECK(kept(bench, *blob) == std::vector<base::BundledFile>{{"phases/a", "aaaa"},
                                                             {"phases/c", "c"},
                                                             {"left_out.txt", "phases/b\n"}});
}

TEST_CASE("links are not followed, and nothing is no dump") {
  test::ToolBench bench;
  CHECK_FALSE(keep_ir_dump({"phases"}, bench.step));
  fs::create_directories(bench.step.scratch / "phases");
  fs::create_symlink("/etc/hostname", bench.step.scratch / "phases" / "link");
  CHECK_FALSE(keep_ir_dump({"phases"}, bench.step));
}

TEST_CASE("dumps are wanted where the options say 1") {
  domain::Options options;
  CHECK_FALSE(wants_ir_dump(options));
  options["dump_ir"] = "0";
  CHECK_FALSE(wants_ir_dump(options));
  options["dump_ir"] = "1";
  CHECK(wants_ir_dump(options));
}

}  // namespace
}  // namespace layerfarm::worker::toolchain
