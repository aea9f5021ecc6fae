#include "shared/base/leftovers.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "shared/base/files.h"
#include "shared/base/process_identity.h"

using namespace layerfarm::base;
namespace fs = std::filesystem;

TEST_CASE(
    "scratch folders of a killed process are swept, those of the living and of strangers stay") {
  const auto parent = ScratchFolder::make(fs::temp_directory_path(), "leftovers");
  REQUIRE(parent.has_value());
  const auto mine = ScratchFolder::make(parent->path(), "lease");
  REQUIRE(mine.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto theirs = ScratchFolder::make(parent->path(), "lease");
    std::ofstream(theirs->path() / "file") << "x";
    fs::create_directories(theirs->path() / "deep" / "er");
    ::_exit(theirs ? 0 : 1);  // as a kill would: nothing is removed
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  REQUIRE(status == 0);
  fs::create_directories(parent->path() / "stranger");
  CHECK(leftovers(parent->path()).size() == 1);
  CHECK(sweep_leftovers(parent->path()) == 1);
  CHECK(fs::exists(mine->path()));
  CHECK(fs::exists(parent->path() / "stranger"));
  CHECK(sweep_leftovers(parent->path()) == 0);

  // A stranger that nothing was done to for long is nobody's.
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(25);
  std::ofstream(parent->path() / "stranger" / "file") << "x";
  fs::last_write_time(parent->path() / "stranger", old);
  CHECK(sweep_leftovers(parent->path()) == 0);
  fs::last_write_time(parent->path() / "stranger" / "file", old);
  CHECK(sweep_leftovers(parent->path()) == 1);
  CHECK(sweep_leftovers(parent->path() / "not there") == 0);
}
