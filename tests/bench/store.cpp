// What the store costs: appending against plain SQLite with the same rows (no checksum, no segment,
// no thread), loading a million keys, finding, memory of the index. Prints a JSON line per figure.
//
// Usage: bench_store [ROWS]
#include <SQLiteCpp/SQLiteCpp.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/database.h"
#include "coordinator/store/sqlite_store.h"
#include "shared/base/files.h"
#include "shared/protocol/codec.h"
#include "tests/support/outcomes.h"

namespace {

using namespace layerfarm;
using namespace layerfarm::coordinator::store;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}
/// For what waits for no disk: the machine may be busy with other things.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void fail(const std::string& what) {
  std::fprintf(stderr, "bench_store: %s\n", what.c_str());
  std::_Exit(1);
}

base::Digest key_of(std::uint64_t number) {
  base::Digest out;
  std::uint64_t state = number * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t i = 0; i < out.bytes.size(); ++i) {
    state ^= state >> 29U;
    state *= 0xBF58476D1CE4E5B9U;
    out.bytes[i] = static_cast<std::uint8_t>(state >> 56U);
  }
  return out;
}

/// Rows a second of plain SQLite: one append-only table, WAL, synchronous=FULL, `per_commit` rows a
/// commit.
double plain_rows_per_s(const std::filesystem::path& folder, std::size_t rows,
                        std::size_t per_commit) {
  SQLite::Database db((folder / "plain.sqlite").string(),
                      SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
  db.exec(
      "CREATE TABLE outcome(sequence INTEGER PRIMARY KEY, run INTEGER, key BLOB, checksum INTEGER, "
      "body BLOB)");
  SQLite::Statement insert(db,
                           "INSERT INTO outcome(run, key, checksum, body) VALUES(1, ?1, 7, ?2)");
  const base::Bytes body = protocol::encode_outcome(*test::executed(0.25));
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < rows;) {
    SQLite::Transaction transaction(db);
    for (std::size_t k = 0; k < per_commit && i < rows; ++k, ++i) {
      const base::Digest key = key_of(i);
      insert.bindNoCopy(1, key.bytes.data(), static_cast<int>(key.bytes.size()));
      insert.bindNoCopy(2, body.data(), static_cast<int>(body.size()));
      insert.exec();
      insert.reset();
    }
    transaction.commit();
  }
  return static_cast<double>(rows) / seconds_since(begin);
}

/// The same through the store. Waits for each commit before the next append, so that commits are
/// as large as asked for.
double store_rows_per_s(SqliteStore& store, RunId run, std::size_t first, std::size_t rows,
                        std::size_t per_commit) {
  const auto outcome = test::executed(0.25);
  const Clock::time_point begin = Clock::now();
  // Two batches on the way: while one is written the next is made.
  Ticket durable{};
  Ticket before{};
  for (std::size_t i = 0; i < rows;) {
    std::vector<Fact> facts;
    facts.reserve(per_commit);
    for (std::size_t k = 0; k < per_commit && i < rows; ++k, ++i) {
      facts.push_back(OutcomeFact{run, key_of(first + i), outcome});
    }
    const Ticket ticket = store.append(std::move(facts));
    const Ticket wanted = i < rows ? before : ticket;
    while (durable < wanted) {
      pollfd news{.fd = store.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&news, 1, 10'000) != 1) fail("nothing became durable in ten seconds");
      const News taken = store.take_news();
      if (taken.trouble) fail(taken.trouble->text());
      if (taken.durable.value() != 0) durable = taken.durable;
    }
    before = ticket;
  }
  return static_cast<double>(rows) / seconds_since(begin);
}

void print(const char* name, double value, const char* unit, const char* peer, double peer_value) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"peer\": \"%s\", \"peer_value\": "
      "%.6g, \"ratio\": %.3f}\n",
      name, value, unit, peer, peer_value, peer_value > 0 ? value / peer_value : 0.0);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t million = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  auto scratch = base::ScratchFolder::make(std::filesystem::temp_directory_path(), "bench");
  if (!scratch) fail(scratch.error().text());
  const base::Bytes body = protocol::encode_outcome(*test::executed(0.25));
  print("store body", static_cast<double>(body.size()), "bytes", "none", 0);

  for (const std::size_t per_commit : {64UL, 1024UL}) {
    const std::size_t rows = per_commit == 64 ? 64'000 : 200'000;
    const auto folder = scratch->path() / std::to_string(per_commit);
    std::filesystem::create_directories(folder);
    const double plain = plain_rows_per_s(folder, rows, per_commit);
    auto store = SqliteStore::open(folder);
    if (!store) fail(store.error().text());
    const auto run = (*store)->begin_run({});
    if (!run) fail(run.error().text());
    const double ours = store_rows_per_s(**store, *run, 0, rows, per_commit);
    print(("store append, commits of " + std::to_string(per_commit)).c_str(), ours, "rows/s",
          "plain SQLite, one table", plain);
  }

  const auto folder = scratch->path() / "million";
  {
    auto store = SqliteStore::open(folder);
    if (!store) fail(store.error().text());
    const auto run = (*store)->begin_run({});
    if (!run) fail(run.error().text());
    static_cast<void>(store_rows_per_s(**store, *run, 0, million, 4096));
  }
  double begin = cpu_seconds();
  auto store = SqliteStore::open(folder);
  if (!store) fail(store.error().text());
  const double load_s = (cpu_seconds() - begin);
  const SqliteStore::Sizes sizes = (*store)->sizes();
  if (sizes.keys != million) fail("the index lacks keys");
  print("store load", load_s, "s", "limit for a million rows", 0.5);
  print("store index", static_cast<double>(sizes.index_bytes) / static_cast<double>(million),
        "bytes/key", "limit", 64);

  constexpr std::size_t kFinds = 100'000;
  begin = cpu_seconds();
  std::size_t found = 0;
  for (std::size_t i = 0; i < kFinds; ++i) {
    if ((*store)->find(key_of((i * 7919) % million))) ++found;
  }
  if (found != kFinds) fail("a key was not found");
  print("store find", (cpu_seconds() - begin) / kFinds * 1e6, "us", "limit", 20);
}
