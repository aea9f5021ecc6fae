#include "worker/cache/scratch_area.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "shared/base/files.h"

using namespace layerfarm;
using namespace layerfarm::worker::cache;
namespace fs = std::filesystem;

namespace {

base::ScratchFolder parent_folder() {
  return std::move(*base::ScratchFolder::make(fs::temp_directory_path(), "area"));
}

/// A process that makes an area with a file in it and stays until it is killed.
pid_t worker_with_area(const fs::path& parent) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto area = ScratchArea::make(parent);
    if (!area) ::_exit(1);
    std::ofstream(area->path() / "large") << "content";
    if (::write(ends[1], "r", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  ::close(ends[1]);
  char byte = 0;
  REQUIRE(::read(ends[0], &byte, 1) == 1);
  ::close(ends[0]);
  return pid;
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("an area is there while its object is, and goes with all that is in it") {
  const auto parent = parent_folder();
  fs::path path;
  {
    auto area = ScratchArea::make(parent.path() / "scratch");
    REQUIRE(area.has_value());
    path = area->path();
    CHECK(path.parent_path() == parent.path() / "scratch");
    CHECK(fs::is_directory(path));
    const auto owner = owner_in_name(path.filename().string());
    REQUIRE(owner.has_value());
    CHECK(owner->pid == ::getpid());
    CHECK(owner->start == process_start(::getpid()));
    fs::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "b" / "c") << "x";
    const ScratchArea moved = std::move(*area);
    CHECK(fs::is_directory(path));
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(entries(parent.path() / "scratch") == 0);
}

TEST_CASE("what a killed worker left is swept by the next one, what a live one has is not") {
  const auto parent = parent_folder();
  const pid_t live = worker_with_area(parent.path());
  const pid_t killed = worker_with_area(parent.path());
  CHECK(entries(parent.path()) == 2);
  CHECK(sweep_scratch_areas(parent.path()) == 0);
  ::kill(killed, SIGKILL);
  ::waitpid(killed, nullptr, 0);
  {
    auto area = ScratchArea::make(parent.path());
    REQUIRE(area.has_value());
    CHECK(entries(parent.path()) == 2);  // the live one's and ours
  }
  ::kill(live, SIGKILL);
  ::waitpid(live, nullptr, 0);
  CHECK(sweep_scratch_areas(parent.path()) == 1);
  CHECK(entries(parent.path()) == 0);
}

TEST_CASE("a pid that was given to somebody else does not keep an area") {
  const auto parent = parent_folder();
  fs::create_directory(parent.path() / ("worker-" + std::to_string(::getpid()) + "-1"));
  CHECK(sweep_scratch_areas(parent.path()) == 1);
}

TEST_CASE("an area that is locked stays, even when its process cannot be seen from here") {
  const auto parent = parent_folder();
  const fs::path other = parent.path() / "worker-999999999-1";
  fs::create_directory(other);
  const int lock = ::open((other / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  CHECK(sweep_scratch_areas(parent.path()) == 0);
  CHECK(fs::exists(other));
  ::close(lock);
  CHECK(sweep_scratch_areas(parent.path()) == 1);
}

TEST_CASE("folders that are no areas are left alone, half-made ones only for a while") {
  const auto parent = parent_folder();
  for (const char* const name : {"lease-abc", "worker-", "worker-1", "worker-x-1", "worker-0-1",
                                 "worker-12-3x", "making-fresh"}) {
    fs::create_directory(parent.path() / name);
  }
  fs::create_directory(parent.path() / "making-old");
  fs::last_write_time(parent.path() / "making-old",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  std::ofstream(parent.path() / "worker-999999999-2") << "a file";
  fs::create_directory_symlink(parent.path() / "lease-abc", parent.path() / "worker-999999999-3");
  CHECK(sweep_scratch_areas(parent.path()) == 1);
  CHECK_FALSE(fs::exists(parent.path() / "making-old"));
  CHECK(entries(parent.path()) == 9);
}

TEST_CASE("folders that a tool closed to itself are removed too") {
  const auto parent = parent_folder();
  const fs::path folder = parent.path() / "x";
  fs::create_directories(folder / "a" / "b" / "c");
  std::ofstream(folder / "a" / "b" / "c" / "file") << "x";
  fs::permissions(folder / "a" / "b" / "c", fs::perms::owner_read);
  fs::permissions(folder / "a" / "b", fs::perms::none);
  fs::permissions(folder / "a", fs::perms::owner_read);
  CHECK(remove_whole_folder(folder));
  CHECK_FALSE(fs::exists(folder));
  CHECK(remove_whole_folder(folder));  // nothing there is nothing left
}

TEST_CASE("when a process began is known for those that are there") {
  CHECK(process_start(::getpid()).has_value());
  CHECK(process_start(::getpid()) == process_start(::getpid()));
  CHECK_FALSE(process_start(999'999'999).has_value());
}

TEST_CASE("an area that cannot be made is an error that names the folder") {
  const auto area = ScratchArea::make("/proc/none/scratch");
  REQUIRE_FALSE(area.has_value());
  CHECK(area.error().text().find("/proc/none/scratch") != std::string::npos);
}
