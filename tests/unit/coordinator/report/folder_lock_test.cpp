#include "coordinator/report/folder_lock.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::coordinator::report;
namespace fs = std::filesystem;

TEST_CASE("a folder is locked by one at a time, and the lock leaves nothing behind") {
  const auto scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  auto first = FolderLock::take(scratch.path());
  REQUIRE(first);
  CHECK(first->held());
  const auto second = FolderLock::take(scratch.path(), std::chrono::milliseconds(20));
  REQUIRE_FALSE(second);
  CHECK(second.error().code == base::ErrorCode::Unavailable);
  CHECK(second.error().text().find(scratch.path().string()) != std::string::npos);
  {
    const FolderLock moved = std::move(*first);
  }
  CHECK(FolderLock::take(scratch.path(), std::chrono::milliseconds(0)));
  CHECK(fs::is_empty(scratch.path()));
}

TEST_CASE("a lock moves to where it is assigned, and what was held there is free") {
  const auto one = *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  const auto two = *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  auto lock = FolderLock::take(one.path());
  REQUIRE(lock);
  *lock = std::move(*FolderLock::take(two.path()));
  CHECK(FolderLock::take(one.path(), std::chrono::milliseconds(0)));
  CHECK_FALSE(FolderLock::take(two.path(), std::chrono::milliseconds(0)));
}

TEST_CASE("a lock ends with its process, killed or not") {
  const auto scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto lock = FolderLock::take(scratch.path());
    [[maybe_unused]] const ssize_t told = ::write(ready[1], lock ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = 'n';
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK_FALSE(FolderLock::take(scratch.path(), std::chrono::milliseconds(0)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(FolderLock::take(scratch.path(), std::chrono::milliseconds(0)));
}

TEST_CASE("a folder that is not there cannot be locked") {
  const auto scratch = *base::ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  CHECK(FolderLock::take(scratch.path() / "none").error().code == base::ErrorCode::NotFound);
}
