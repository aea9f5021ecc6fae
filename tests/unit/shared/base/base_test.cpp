#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "shared/base/blob_folder.h"
#include "shared/base/digest.h"
#include "shared/base/files.h"
#include "shared/base/ids.h"
#include "shared/base/mailbox.h"
#include "shared/base/places.h"
#include "shared/base/result.h"
#include "tests/support/environment_change.h"

using namespace layerfarm::base;
using layerfarm::tests::EnvironmentChange;
namespace fs = std::filesystem;

namespace {

struct Temp {
  ScratchFolder scratch = *ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
  [[nodiscard]] fs::path operator/(const std::string& name) const { return scratch.path() / name; }
};

}  // namespace

TEST_CASE("an error reads from the outside in") {
  const Error error = Error{ErrorCode::NotFound, "no such file"}.with("chip a").with("discover");
  CHECK(error.text() == "discover: chip a: no such file");
  CHECK(os_error("x", ENOENT).code == ErrorCode::NotFound);
  CHECK(os_error("x", EACCES).code == ErrorCode::Internal);
  CHECK(os_error("x", EACCES).message.find("x: ") == 0);
}

TEST_CASE("BLAKE2b-256 of known bytes") {
  // RFC 7693 lists BLAKE2b-512 only; this is what b2sum -l 256 prints for the empty file and for
  // "abc".
  CHECK(digest_of("").hex() == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  CHECK(digest_of("abc").hex() ==
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

TEST_CASE("hex digests come back and anything else is refused") {
  const Digest digest = digest_of("x");
  CHECK(*Digest::from_hex(digest.hex()) == digest);
  CHECK(*Digest::from_bytes(digest.view()) == digest);
  CHECK(!Digest::from_hex(digest.hex().substr(1)).has_value());
  std::string upper = digest.hex();
  upper[0] = 'G';
  CHECK(!Digest::from_hex(upper).has_value());
  CHECK(!Digest::from_bytes("short").has_value());
  CHECK(Digest{}.is_zero());
  CHECK(!digest.is_zero());
}

TEST_CASE("fields of a digest cannot run into one another, and kinds and domains differ") {
  const auto of = [](auto&&... fields) {
    Hasher hasher("test");
    (hasher.add(fields), ...);
    return hasher.finish();
  };
  CHECK(of("ab", "c") != of("a", "bc"));
  CHECK(of("ab", "c") == of("ab", "c"));
  CHECK(of(1) != of("1"));
  CHECK(of(1) == of(std::int64_t{1}));
  CHECK(of(0.0) != of(-0.0));
  CHECK(of(true) == of(1));
  CHECK(Hasher("a").finish() != Hasher("b").finish());
}

TEST_CASE("a file's digest is that of its bytes") {
  const Temp temp;
  const std::string big(3'000'000, 'q');
  std::ofstream(temp / "f") << big;
  CHECK(*digest_of_file((temp / "f").string()) == digest_of(big));
  CHECK(digest_of_file((temp / "none").string()).error().code == ErrorCode::NotFound);
}

TEST_CASE("a file is written whole, readable, and over an old one") {
  const Temp temp;
  REQUIRE(write_file_atomically(temp / "f", "one", Sync::Yes).has_value());
  REQUIRE(write_file_atomically(temp / "f", "two", Sync::No).has_value());
  CHECK(*read_file(temp / "f") == "two");
  struct stat info{};
  REQUIRE(::stat((temp / "f").c_str(), &info) == 0);
  CHECK((info.st_mode & 0400) != 0);
  CHECK(std::distance(fs::directory_iterator(temp.scratch.path()), fs::directory_iterator{}) == 1);
  CHECK(!write_file_atomically(temp / "no" / "f", "x", Sync::No).has_value());
  // A link stays one, and what it leads to is renewed.
  fs::create_symlink("f", temp / "link");
  REQUIRE(write_file_atomically(temp / "link", "three", Sync::No).has_value());
  CHECK(fs::is_symlink(temp / "link"));
  CHECK(*read_file(temp / "f") == "three");
  fs::create_symlink("nothing", temp / "dangling");
  REQUIRE(write_file_atomically(temp / "dangling", "x", Sync::No).has_value());
  CHECK(*read_file(temp / "dangling") == "x");
  // What is no regular file stays what it is.
  REQUIRE(::mkfifo((temp / "fifo").c_str(), 0600) == 0);
  const auto refused = write_file_atomically(temp / "fifo", "x", Sync::No);
  REQUIRE(!refused.has_value());
  CHECK(refused.error().message.find("is no regular file") != std::string::npos);
  CHECK(fs::is_fifo(temp / "fifo"));
}

TEST_CASE("reading refuses folders, missing files and more than the limit") {
  const Temp temp;
  std::ofstream(temp / "f") << "12345";
  CHECK(*read_file(temp / "f", 5) == "12345");
  CHECK(!read_file(temp / "f", 4).has_value());
  CHECK(read_file(temp / "none").error().code == ErrorCode::NotFound);
  CHECK(!read_file(temp.scratch.path()).has_value());
}

TEST_CASE("a scratch folder is gone with its content, also after a move") {
  fs::path path;
  {
    auto made = ScratchFolder::make(fs::temp_directory_path(), "layerfarm-test");
    REQUIRE(made.has_value());
    ScratchFolder moved = std::move(*made);
    path = moved.path();
    fs::create_directories(path / "a" / "b");
    std::ofstream(path / "a" / "f") << "x";
    CHECK(fs::exists(path / "a" / "f"));
  }
  CHECK(!fs::exists(path));
  CHECK(!ScratchFolder::make("/proc/none", "x").has_value());
}

TEST_CASE("a folder that a tool closed to itself is removed whole") {
  const Temp temp;
  const fs::path folder = temp / "x";
  fs::create_directories(folder / "a" / "b" / "c");
  REQUIRE(write_file_atomically(folder / "a" / "b" / "c" / "file", "x", Sync::No).has_value());
  fs::permissions(folder / "a" / "b" / "c", fs::perms::owner_read);
  fs::permissions(folder / "a" / "b", fs::perms::none);
  fs::permissions(folder / "a", fs::perms::owner_read);
  CHECK(remove_folder(folder));
  CHECK_FALSE(fs::exists(folder));
  CHECK(remove_folder(folder));  // nothing there is nothing left
}

TEST_CASE("blobs are stored once under their digest and read back") {
  const Temp temp;
  const BlobFolder blobs(temp / "blobs");
  const Digest digest = *blobs.put("content");
  CHECK(digest == digest_of("content"));
  CHECK(*blobs.put("content") == digest);
  CHECK(blobs.has(digest));
  CHECK(*blobs.get(digest) == "content");
  REQUIRE(blobs.list().size() == 1);
  CHECK(blobs.list()[0].bytes == 7);
  REQUIRE(blobs.link_to(digest, temp / "linked").has_value());
  CHECK(*read_file(temp / "linked") == "content");
  CHECK(blobs.remove(digest));
  CHECK(!blobs.remove(digest));
  CHECK(blobs.get(digest).error().code == ErrorCode::NotFound);
  CHECK(blobs.link_to(digest, temp / "again").error().code == ErrorCode::NotFound);
}

TEST_CASE("a file becomes a blob, and a damaged blob is found and removed") {
  const Temp temp;
  const BlobFolder blobs(temp / "blobs");
  std::ofstream(temp / "f") << "file content";
  const Digest digest = *blobs.put_file(temp / "f");
  CHECK(*blobs.get(digest) == "file content");
  ::chmod(blobs.path(digest).c_str(), 0644);
  std::ofstream(blobs.path(digest)) << "file c0ntent";
  CHECK(blobs.get(digest).error().code == ErrorCode::Corrupt);
  CHECK(!blobs.has(digest));
  CHECK(!blobs.put_file(temp / "none").has_value());
}

TEST_CASE("a blob that was written to is found, removed, and stored anew when it comes again") {
  const Temp temp;
  const BlobFolder blobs(temp / "blobs");
  const Digest digest = *blobs.put("content");
  CHECK(blobs.intact(digest));
  REQUIRE(blobs.link_to(digest, temp / "copy").has_value());
  // What a tool does to its own copy harms nobody.
  ::chmod((temp / "copy").c_str(), 0644);
  std::ofstream(temp / "copy") << "garbage";
  CHECK(blobs.intact(digest));
  ::chmod(blobs.path(digest).c_str(), 0644);
  std::ofstream(blobs.path(digest)) << "garbage";
  CHECK(blobs.link_to(digest, temp / "other").error().code == ErrorCode::Corrupt);
  CHECK(!blobs.has(digest));
  CHECK(!blobs.intact(digest));
  CHECK(*blobs.put("content") == digest);
  CHECK(blobs.intact(digest));
}

TEST_CASE("a large blob is linked, and a change through the link is found") {
  const Temp temp;
  const BlobFolder blobs(temp / "blobs");
  const Digest digest = *blobs.put(std::string(2'000'000, 'x'));
  REQUIRE(blobs.link_to(digest, temp / "link").has_value());
  CHECK(fs::hard_link_count(temp / "link") == 2);
  ::chmod((temp / "link").c_str(), 0644);
  std::ofstream(temp / "link") << "garbage";
  CHECK(!blobs.intact(digest));
}

TEST_CASE("only regular files are read: a FIFO or a device would keep the caller waiting") {
  const Temp temp;
  REQUIRE(::mkfifo((temp / "fifo").c_str(), 0600) == 0);
  CHECK(read_file(temp / "fifo").error().message.find("not a regular file") != std::string::npos);
  CHECK(digest_of_file((temp / "fifo").string()).error().message.find("not a regular file") !=
        std::string::npos);
  CHECK(!read_file("/dev/zero").has_value());
  CHECK(!open_regular_file(temp.scratch.path()).has_value());
}

TEST_CASE("a blob's time of use is renewed") {
  const Temp temp;
  const BlobFolder blobs(temp / "blobs");
  const Digest digest = *blobs.put("x");
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ::utimensat(AT_FDCWD, blobs.path(digest).c_str(), old, 0);
  CHECK(blobs.list()[0].used_ns == 1'000'000'000'000);
  blobs.touch(digest);
  CHECK(blobs.list()[0].used_ns > 1'000'000'000'000);
}

TEST_CASE("the cache folder follows the variables in their order") {
  const EnvironmentChange ours("LAYERFARM_CACHE_DIR", {});
  const EnvironmentChange theirs("TORQ_GEN_CONFIG_CACHE_DIR", {});
  const EnvironmentChange xdg("XDG_CACHE_HOME", {});
  const EnvironmentChange home("HOME", "/h");
  CHECK(cache_folder() == "/h/.cache/layerfarm");
  const EnvironmentChange third("XDG_CACHE_HOME", "/x");
  CHECK(cache_folder() == "/x/layerfarm");
  const EnvironmentChange second("TORQ_GEN_CONFIG_CACHE_DIR", "/t");
  CHECK(cache_folder() == "/t");
  const EnvironmentChange first("LAYERFARM_CACHE_DIR", "relative");
  CHECK(cache_folder() == fs::current_path() / "relative");
  CHECK(environment("LAYERFARM_NO_SUCH_VARIABLE").empty());
  CHECK(program_folder().is_absolute());
}

TEST_CASE("what is put quietly waits for a wake and keeps its place") {
  Mailbox<int> mailbox;
  const auto woken = [&] {
    pollfd item{mailbox.fd(), POLLIN, 0};
    return ::poll(&item, 1, 0) == 1;
  };
  mailbox.put_quietly(1);
  CHECK(!woken());
  mailbox.put(2);
  CHECK(woken());
  CHECK(mailbox.take() == std::vector{1, 2});
  mailbox.put_quietly(3);
  mailbox.wake();
  CHECK(woken());
  CHECK(mailbox.take() == std::vector{3});
  CHECK(!woken());
}

TEST_CASE("a cleared folder is empty and its owner's again") {
  const Temp temp;
  const fs::path folder = temp / "folder";
  fs::create_directories(folder / "a" / "b");
  std::ofstream(folder / "a" / "file") << "x";
  fs::permissions(folder / "a", fs::perms::none);
  fs::permissions(folder, fs::perms::owner_read);
  CHECK(clear_folder(folder));
  CHECK(fs::is_empty(folder));
  CHECK((fs::status(folder).permissions() & fs::perms::owner_all) == fs::perms::owner_all);
  CHECK(clear_folder(folder));
  CHECK(!clear_folder(temp / "none"));

  // A tool that puts a link in the folder's place does not get another folder emptied.
  fs::create_directory(temp / "other");
  std::ofstream(temp / "other" / "file") << "x";
  fs::remove(folder);
  fs::create_directory_symlink(temp / "other", folder);
  CHECK(!clear_folder(folder));
  CHECK(fs::exists(temp / "other" / "file"));
}

TEST_CASE("a mailbox brings everything over in order and wakes its reader") {
  Mailbox<int> mailbox;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) mailbox.put(i);
  });
  std::vector<int> got;
  while (got.size() < 1000) {
    for (const int i : mailbox.take()) got.push_back(i);
  }
  writer.join();
  for (int i = 0; i < 1000; ++i) CHECK(got[static_cast<std::size_t>(i)] == i);
  CHECK(mailbox.take().empty());
}

TEST_CASE("typed ids compare and hash by value") {
  using Id = StrongId<struct SomeTag>;
  CHECK(Id(1) < Id(2));
  CHECK(Id(3) == Id(3));
  CHECK(std::hash<Id>{}(Id(5)) == std::hash<std::uint64_t>{}(5));
}
