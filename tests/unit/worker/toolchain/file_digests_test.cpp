#include "worker/toolchain/file_digests.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "shared/base/files.h"
#include "tests/support/environment_change.h"

using namespace layerfarm;
using tests::EnvironmentChange;
using worker::toolchain::FileDigests;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

struct Place {
  base::ScratchFolder folder = *base::ScratchFolder::make(fs::temp_directory_path(), "digests");
  fs::path memory = folder.path() / "cache" / "memory";
  fs::path file = folder.path() / "tool";
};

/// Sets size and time of change back to what they were: the file then looks unchanged.
void set_time(const fs::path& path, const struct stat& as) {
  const timespec times[2] = {as.st_atim, as.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("a file's digest is remembered across objects") {
  Place place;
  write(place.file, "one");
  {
    FileDigests digests(place.memory);
    CHECK(digests.of(place.file).value() == base::digest_of("one"));
  }
  // Another digest in the memory shows that the file is not read again.
  std::string text = base::read_file(place.memory).value();
  const std::string one = base::digest_of("one").hex();
  text.replace(text.find(one), one.size(), base::digest_of("two").hex());
  write(place.memory, text);
  FileDigests digests(place.memory);
  CHECK(digests.of(place.file).value() == base::digest_of("two"));
}

TEST_CASE("a file of the same size and time is read again when its content was changed") {
  Place place;
  write(place.file, "one");
  {
    FileDigests digests(place.memory);
    CHECK(digests.of(place.file).value() == base::digest_of("one"));
  }
  struct stat before{};
  REQUIRE(::stat(place.file.c_str(), &before) == 0);
  write(place.file, "two");
  set_time(place.file, before);
  FileDigests digests(place.memory);
  CHECK(digests.of(place.file).value() == base::digest_of("two"));
}

TEST_CASE("a changed file is read again") {
  Place place;
  write(place.file, "one");
  FileDigests digests(place.memory);
  const auto first = digests.of(place.file).value();
  write(place.file, "other");
  CHECK(digests.of(place.file).value() == base::digest_of("other"));
  CHECK(digests.of(place.file).value() != first);
}

TEST_CASE("a missing file is an error, and changes the digest over several") {
  Place place;
  write(place.file, "one");
  FileDigests digests(place.memory);
  CHECK_FALSE(digests.of(place.folder.path() / "absent").has_value());
  const auto with = digests.of_all({place.file});
  CHECK(with == digests.of_all({place.file}));
  CHECK(with != digests.of_all({place.file, place.folder.path() / "absent"}));
  CHECK(with != digests.of_all({}));
}

TEST_CASE("a damaged memory costs time only") {
  Place place;
  fs::create_directories(place.memory.parent_path());
  write(place.file, "one");
  for (const std::string text :
       {"", "other head\n", "layerfarm tool digests 1\nshort\nzz 1 2 /x\n\n"}) {
    write(place.memory, text);
    FileDigests digests(place.memory);
    CHECK(digests.of(place.file).value() == base::digest_of("one"));
  }
}

TEST_CASE(
    "the memory is beside the installed tools, and in the cache folder where there are none") {
  const Place place;
  const EnvironmentChange cache("LAYERFARM_CACHE_DIR", (place.folder.path() / "cache").string());
  const EnvironmentChange tools("LAYERFARM_DEPS_DIR", place.folder.path().string());
  CHECK(FileDigests::default_memory().parent_path() == place.folder.path());
  const EnvironmentChange none("LAYERFARM_DEPS_DIR", (place.folder.path() / "none").string());
  CHECK(FileDigests::default_memory().parent_path() == place.folder.path() / "cache");
}
