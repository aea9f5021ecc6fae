#include "coordinator/store/sqlite_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "coordinator/store/database.h"
#include "shared/base/files.h"
#include "tests/support/outcomes.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::store;
using test::key_of;

struct Folder {
  base::ScratchFolder scratch =
      *base::ScratchFolder::make(std::filesystem::temp_directory_path(), "store");
  std::filesystem::path path = scratch.path() / "cache";
  std::filesystem::path file = path / kStoreFileName;
};

std::unique_ptr<SqliteStore> open(const Folder& folder, const SqliteStoreOptions& options = {}) {
  auto store = SqliteStore::open(folder.path, options);
  REQUIRE_MESSAGE(store.has_value(), store.error().text());
  return std::move(*store);
}

RunId begin(Store& store) {
  return *store.begin_run({.process = base::this_process(), .started_ms = 1, .command = {"t"}});
}

News wait_for_news(Store& store) {
  pollfd news{.fd = store.fd(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&news, 1, 10'000) == 1);
  return store.take_news();
}

void settle(Store& store, Ticket ticket) {
  for (int i = 0; i < 1000; ++i) {
    if (wait_for_news(store).durable >= ticket) return;
  }
  FAIL("not durable in time");
}

/// `count` outcomes with keys "0", "1" ...
void fill(Store& store, RunId run, int count, int per_commit = 100) {
  Ticket ticket{};
  for (int i = 0; i < count;) {
    std::vector<Fact> facts;
    for (int k = 0; k < per_commit && i < count; ++k, ++i) {
      facts.push_back(OutcomeFact{run, key_of(std::to_string(i)), test::executed(i)});
    }
    ticket = store.append(std::move(facts));
    settle(store, ticket);
  }
}

int found(Store& store, int count) {
  int out = 0;
  for (int i = 0; i < count; ++i) {
    const auto row = store.find(key_of(std::to_string(i)));
    if (!row) continue;
    CHECK(row->outcome == *test::executed(i));
    ++out;
  }
  return out;
}

std::string refusal(const Folder& folder, base::ErrorCode code,
                    const DatabaseOptions& options = {}) {
  const auto opened = open_database(folder.path, options);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == code);
  CHECK(opened.error().text().find(folder.path.string()) != std::string::npos);
  return opened.error().text();
}

void overwrite(const std::filesystem::path& file, std::streamoff at, const std::string& bytes) {
  std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp(at);
  out << bytes;
}

/// Everything in the file proper, nothing in the WAL.
void checkpoint(const Folder& folder) {
  SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
  db.execAndGet("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace

TEST_CASE("what was stored is there after closing and opening again") {
  const Folder folder;
  RunId run;
  {
    const auto store = open(folder);
    run = begin(*store);
    fill(*store, run, 250);
    static_cast<void>(store->append({OutcomeFact{run, key_of("last"), test::executed(9)}}));
  }  // the destructor writes what waits
  const auto store = open(folder);
  CHECK(found(*store, 250) == 250);
  CHECK(store->find(key_of("last")).has_value());
  CHECK(store->sizes().keys == 251);
  CHECK(store->sizes().outcomes == 251);
  CHECK(store->sizes().open_runs == 1);
  CHECK(begin(*store) != run);
}

TEST_CASE(
    "rows of another process are picked up by refresh, and neither disturbs the other's places in "
    "the log") {
  const Folder folder;
  const auto one = open(folder);
  const auto two = open(folder);
  const RunId run_one = begin(*one);
  const RunId run_two = begin(*two);
  CHECK(run_one != run_two);
  for (int i = 0; i < 50; ++i) {
    const Ticket a =
        one->append({OutcomeFact{run_one, key_of("one" + std::to_string(i)), test::executed(i)}});
    const Ticket b =
        two->append({OutcomeFact{run_two, key_of("two" + std::to_string(i)), test::executed(i)}});
    if (i == 49) {
      settle(*one, a);
      settle(*two, b);
    }
  }
  CHECK_FALSE(one->find(key_of("two0")).has_value());
  one->refresh();
  two->refresh();
  for (int i = 0; i < 50; ++i) {
    CHECK(one->find(key_of("two" + std::to_string(i)))->outcome == *test::executed(i));
    CHECK(two->find(key_of("one" + std::to_string(i)))->run == run_one);
  }
  CHECK(one->outcomes_of(run_two, Store::Which::All).size() == 50);
}

TEST_CASE(
    "a process that is killed at any moment leaves a store whose durable rows are all there") {
  for (int round = 0; round < 5; ++round) {
    const Folder folder;
    int pipe_ends[2];
    REQUIRE(::pipe(pipe_ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = SqliteStore::open(folder.path);
      if (!store) ::_exit(1);
      const RunId run = *(*store)->begin_run({});
      for (int i = 0;; ++i) {
        const Ticket ticket =
            (*store)->append({OutcomeFact{run, key_of(std::to_string(i)), test::executed(i)}});
        News news;
        while (news.durable < ticket) {
          pollfd wait{.fd = (*store)->fd(), .events = POLLIN, .revents = 0};
          ::poll(&wait, 1, 1000);
          if (const News taken = (*store)->take_news(); taken.durable.value() != 0) news = taken;
        }
        if (::write(pipe_ends[1], &i, sizeof i) != sizeof i) ::_exit(1);
      }
    }
    int last = -1;
    const int wanted = 20 + round * 37;
    while (last < wanted && ::read(pipe_ends[0], &last, sizeof last) == sizeof last) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(pipe_ends[1]);
    while (::read(pipe_ends[0], &last, sizeof last) == sizeof last) {
    }
    ::close(pipe_ends[0]);
    const auto store = open(folder);
    CHECK(found(*store, last + 1) == last + 1);
    CHECK(store->take_news().messages.empty());
    CHECK(store->runs(true).size() == 1);
  }
}

TEST_CASE(
    "a row whose bytes were changed counts as unknown, with one message that names the file") {
  const Folder folder;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 20);
  }
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
    db.exec(
        "UPDATE outcome SET body = CAST(replace(hex(body), '74657374', '54657374') AS BLOB) WHERE "
        "sequence = 3");
    db.exec("UPDATE outcome SET took_us = took_us + 1 WHERE sequence = 5");
    db.exec("UPDATE outcome SET key = x'0102' WHERE sequence = 7");
  }
  const auto store = open(folder);
  CHECK(found(*store, 20) == 17);
  const auto messages = store->take_news().messages;
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find(folder.file.string()) != std::string::npos);
  // The work is done again and answers from then on.
  settle(*store, store->append({OutcomeFact{RunId(1), key_of("2"), test::executed(2)}}));
  CHECK(store->find(key_of("2")).has_value());
}

TEST_CASE("a body that was written by a program that this one cannot understand is set aside") {
  const Folder folder;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 3);
  }
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
    const base::Digest key = key_of("1");
    const OutcomeRow row{2, 1, 4, 1, 10, key.view(), "\xc1"};
    SQLite::Statement update(
        db, "UPDATE outcome SET body = ?1, checksum = ?2, took_us = 10 WHERE sequence = 2");
    update.bind(1, row.body.data(), 1);
    update.bind(2, checksum_of(row));
    update.exec();
  }
  const auto store = open(folder);
  CHECK(found(*store, 3) == 2);
  CHECK(store->take_news().messages.size() == 1);
}

TEST_CASE("a damaged segment is made up from the log") {
  const Folder folder;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 300);
  }
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
    db.exec("UPDATE segment SET entries = zeroblob(length(entries)) WHERE first = 101");
    db.exec("UPDATE segment SET count = 7 WHERE first = 201");
  }
  const auto store = open(folder);
  CHECK(found(*store, 300) == 300);
  CHECK(store->take_news().messages.size() == 1);
}

TEST_CASE("pages of zeros anywhere but at the beginning cost the rows on them, never the store") {
  const Folder folder;
  constexpr int kRows = 2000;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), kRows);
  }
  checkpoint(folder);
  const auto pages = static_cast<std::streamoff>(std::filesystem::file_size(folder.file) / 4096);
  REQUIRE(pages > 100);
  const std::string whole = *base::read_file(folder.file);
  int worst = kRows;
  // Page 1 is the schema, the following few the roots of tables: those are tried below.
  for (std::streamoff page = 20; page < pages; page += 23) {
    CAPTURE(page);
    overwrite(folder.file, 0, whole);
    overwrite(folder.file, page * 4096, std::string(4096, '\0'));
    const auto store = open(folder);
    worst = std::min(worst, found(*store, kRows));
  }
  CHECK(worst > kRows / 2);
  CHECK(worst < kRows);
  for (std::streamoff page = 1; page < 20; ++page) {
    CAPTURE(page);
    overwrite(folder.file, 0, whole);
    overwrite(folder.file, page * 4096, std::string(4096, '\0'));
    const auto store = SqliteStore::open(folder.path);
    if (store) {
      static_cast<void>(found(**store, kRows));  // whatever is left; what matters is that it ends
    } else {
      CHECK(store.error().code == base::ErrorCode::Corrupt);
    }
  }
}

TEST_CASE(
    "random damage of the file never crashes: an Error at opening, or rows that count as unknown") {
  const Folder folder;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 200);
  }
  checkpoint(folder);
  const std::string whole = *base::read_file(folder.file);
  unsigned state = 12345;
  const auto draw = [&state] { return state = state * 1103515245U + 12345U, state >> 8U; };
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::string bytes = whole;
    if (round % 3 == 0) bytes.resize(draw() % bytes.size());
    for (int flips = 0; flips < 20 && !bytes.empty(); ++flips)
      bytes[draw() % bytes.size()] = static_cast<char>(draw());
    REQUIRE(base::write_file_atomically(folder.file, bytes, base::Sync::No).has_value());
    std::filesystem::remove(folder.file.string() + "-wal");
    std::filesystem::remove(folder.file.string() + "-shm");
    const auto store = SqliteStore::open(folder.path);
    if (!store) {
      CHECK(store.error().text().find(folder.path.string()) != std::string::npos);
      continue;
    }
    CHECK(found(**store, 200) <= 200);
    static_cast<void>((*store)->runs(false));
    static_cast<void>((*store)->outcomes_of(RunId(1), Store::Which::All));
    static_cast<void>((*store)->typical_times());
  }
}

TEST_CASE("whatever is damaged on the schema's page, the refusal says what to do") {
  const Folder folder;
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 200);
  }
  checkpoint(folder);
  const std::string whole = *base::read_file(folder.file);
  const auto table = whole.find("CREATE TABLE outcome");
  REQUIRE(table < 4096);
  int refused = 0;
  // Names and words of the schema, its cells, and every part of the page in turn.
  std::vector<std::pair<std::size_t, std::string>> damages = {
      {table, "CREATE TABLE outcomx"}, {table, "creeeee"}, {table, std::string(100, '\0')}};
  for (std::size_t at = 16; at < 4096; at += 60) damages.emplace_back(at, std::string(60, 'x'));
  for (const auto& [at, bytes] : damages) {
    CAPTURE(at);
    overwrite(folder.file, 0, whole);
    overwrite(folder.file, static_cast<std::streamoff>(at), bytes);
    std::filesystem::remove(folder.file.string() + "-wal");
    std::filesystem::remove(folder.file.string() + "-shm");
    const auto store = SqliteStore::open(folder.path);
    std::string said = store ? "" : store.error().text();
    if (store) {
      const auto run = (*store)->begin_run(RunStart{});
      if (!run) said = run.error().text();
    }
    if (said.empty()) continue;
    ++refused;
    CAPTURE(said);
    CHECK(said.find(folder.file.string()) != std::string::npos);
    CHECK(said.find("LAYERFARM_CACHE_DIR") != std::string::npos);
  }
  CHECK(refused > 3);
}

TEST_CASE("a full disk is reported, nothing is lost, and it goes on when there is room") {
  const Folder folder;
  {
    const auto filler = open(folder);
    const RunId run = begin(*filler);
    fill(*filler, run, 200);
    fill(*filler, run, 200);  // the same keys again: the first two hundred rows can be given up
  }
  std::int64_t pages = 0;
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
    pages = db.execAndGet("PRAGMA page_count").getInt64();
  }
  const auto store = open(folder, {.retry = std::chrono::milliseconds(20), .max_pages = pages + 3});
  const RunId run(1);
  std::vector<Fact> facts;
  for (int i = 0; i < 100; ++i)
    facts.push_back(OutcomeFact{run, key_of("new" + std::to_string(i)), test::executed(i)});
  const Ticket ticket = store->append(facts);
  News news = wait_for_news(*store);
  REQUIRE(news.trouble.has_value());
  CHECK(news.trouble->code == base::ErrorCode::Unavailable);
  CHECK(news.trouble->text().find("no room") != std::string::npos);
  CHECK(news.durable < ticket);
  CHECK_FALSE(store->find(key_of("new0")).has_value());
  CHECK(wait_for_news(*store).trouble.has_value());  // it tries by itself
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE, 10'000);
    db.exec("DELETE FROM outcome WHERE sequence <= 200");
  }
  for (int i = 0; i < 500 && news.durable < ticket; ++i) news = wait_for_news(*store);
  CHECK_FALSE(news.trouble.has_value());
  CHECK(news.durable >= ticket);
  for (int i = 0; i < 100; ++i) CHECK(store->find(key_of("new" + std::to_string(i))).has_value());
}

TEST_CASE("closing on a disk that stays full gives up in time and says how much was not kept") {
  const Folder folder;
  {
    const auto filler = open(folder);
    fill(*filler, begin(*filler), 50);
  }
  std::int64_t pages = 0;
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE);
    pages = db.execAndGet("PRAGMA page_count").getInt64();
  }
  const auto store = open(folder, {.patience = std::chrono::milliseconds(100), .max_pages = pages});
  std::vector<Fact> facts;
  for (int i = 0; i < 200; ++i)
    facts.push_back(OutcomeFact{RunId(1), key_of("new" + std::to_string(i)), test::executed(i)});
  static_cast<void>(store->append(facts));
  const auto closed = store->close();
  REQUIRE_FALSE(closed.has_value());
  CHECK(closed.error().text().find("200 facts") != std::string::npos);
}

TEST_CASE("compacting takes out replaced answers and leftovers of ended runs, and nothing else") {
  const Folder folder;
  const auto store = open(folder);
  const auto other = open(folder);
  const RunId ended = begin(*store);
  const RunId open_run = begin(*store);
  fill(*store, ended, 2500);
  const auto crash = test::failed(domain::Stage::Execute, domain::Ending::Crashed, "x");
  settle(*store,
         store->append({OutcomeFact{ended, key_of("crash"), crash},
                        OutcomeFact{open_run, key_of("crash"), crash}, RunEndedFact{ended, 0}}));
  other->refresh();
  fill(*store, open_run, 2400);
  const auto removed = store->compact();
  REQUIRE(removed.has_value());
  CHECK(*removed == 2401);
  CHECK(found(*store, 2500) == 2500);
  CHECK(store->outcomes_of(ended, Store::Which::NotAnswering).empty());
  CHECK(store->outcomes_of(open_run, Store::Which::NotAnswering).size() == 1);
  CHECK(*store->compact() == 0);
  // Another process that knew the old places finds the new ones by itself.
  CHECK(found(*other, 2500) == 2500);
  const auto again = open(folder);
  CHECK(found(*again, 2500) == 2500);
}

TEST_CASE("files that are no store are refused with what to do") {
  const Folder folder;
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.file) << std::string(10'000, 'x');
  CHECK(refusal(folder, base::ErrorCode::Corrupt).find("LAYERFARM_CACHE_DIR") != std::string::npos);

  std::filesystem::remove(folder.file);
  {
    SQLite::Database db(folder.file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("CREATE TABLE somebody(elses INTEGER)");
  }
  CHECK(refusal(folder, base::ErrorCode::InvalidInput).find("another program") !=
        std::string::npos);

  std::filesystem::remove_all(folder.path);
  std::ofstream(folder.path) << "a file where the folder should be";
  static_cast<void>(refusal(folder, base::ErrorCode::InvalidInput));
}

TEST_CASE("a store is brought forward step by step, and one of a newer program is refused") {
  const Folder folder;
  const Migration steps[] = {migrations()[0],
                             {2, "ALTER TABLE run ADD COLUMN note TEXT"},
                             {3, "UPDATE run SET note = 'old'"}};
  {
    const auto store = open(folder);
    fill(*store, begin(*store), 5);
  }
  {
    auto db = open_database(folder.path, {.steps = std::span(steps)});
    REQUIRE(db.has_value());
    CHECK(db->execAndGet("PRAGMA user_version").getInt() == 3);
    CHECK(db->execAndGet("SELECT note FROM run").getString() == "old");
    CHECK(db->execAndGet("SELECT count(*) FROM outcome").getInt() == 5);
  }
  CHECK(refusal(folder, base::ErrorCode::Incompatible).find("newer layerfarm") !=
        std::string::npos);
}

TEST_CASE("a step that fails changes nothing") {
  const Folder folder;
  const Migration steps[] = {migrations()[0],
                             {2, "CREATE TABLE extra(x); INSERT INTO nowhere VALUES(1)"}};
  {
    const auto store = open(folder);
  }
  static_cast<void>(refusal(folder, base::ErrorCode::Corrupt, {.steps = std::span(steps)}));
  auto db = open_database(folder.path, {});
  REQUIRE(db.has_value());
  CHECK(db->execAndGet("SELECT count(*) FROM sqlite_master WHERE name = 'extra'").getInt() == 0);
}

TEST_CASE("many processes may make the store at the same moment") {
  const Folder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = SqliteStore::open(folder.path);
      if (!store) ::_exit(1);
      const auto run = (*store)->begin_run({});
      if (!run) ::_exit(2);
      static_cast<void>(
          (*store)->append({OutcomeFact{*run, key_of(std::to_string(i)), test::executed(i)}}));
      ::_exit((*store)->close() ? 0 : 3);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  const auto store = open(folder);
  CHECK(found(*store, 8) == 8);
  CHECK(store->sizes().runs == 8);
}

TEST_CASE("network file systems are known by name, disks are not") {
  CHECK(network_file_system(0x6969) == "NFS");
  CHECK(network_file_system(0xFF534D42) == "CIFS");
  CHECK(network_file_system(static_cast<std::int64_t>(static_cast<std::int32_t>(0xFF534D42))) ==
        "CIFS");
  CHECK(network_file_system(0x01021997) == "9p");
  CHECK_FALSE(network_file_system(0xEF53).has_value());      // ext4
  CHECK_FALSE(network_file_system(0x01021994).has_value());  // tmpfs
}
