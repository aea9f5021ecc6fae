#include "coordinator/store/database.h"

#include <sqlite3.h>
#include <sys/vfs.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <thread>

#include "shared/domain/outcome.h"

namespace layerfarm::coordinator::store {
namespace fs = std::filesystem;
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

static_assert(std::endian::native == std::endian::little,
              "segments are written as they lie in memory");
// The partial index below and the queries that use it say `ending > 2`.
static_assert(domain::answers_later_runs(domain::Ending::Done) &&
              static_cast<int>(domain::Ending::Done) == 1);
static_assert(domain::answers_later_runs(domain::Ending::Refused) &&
              static_cast<int>(domain::Ending::Refused) == 2);
static_assert(!domain::answers_later_runs(domain::Ending::Crashed) &&
              !domain::answers_later_runs(domain::Ending::Cancelled));

/// "LFS1": tells a store from any other SQLite file.
constexpr std::int64_t kApplicationId = 0x4C465331;

constexpr std::array<Migration, 1> kMigrations = {{
    {1, R"sql(
      CREATE TABLE outcome(
        sequence INTEGER PRIMARY KEY,  -- given by the writer, never twice
        run      INTEGER NOT NULL,
        stage    INTEGER NOT NULL,
        ending   INTEGER NOT NULL,
        took_us  INTEGER NOT NULL,
        key      BLOB NOT NULL,        -- job key, 32 bytes
        checksum INTEGER NOT NULL,
        body     BLOB NOT NULL         -- protocol::encode_outcome
      );
      CREATE INDEX outcome_not_answering ON outcome(run) WHERE ending > 2;
      CREATE TABLE segment(            -- the outcomes of one commit, for the index in memory
        first    INTEGER PRIMARY KEY,  -- sequence of the first
        count    INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        entries  BLOB NOT NULL         -- 9 bytes each: first 8 of the key, 1 = answers later runs
      );
      CREATE TABLE run(
        id             INTEGER PRIMARY KEY AUTOINCREMENT,
        host           TEXT NOT NULL,
        pid            INTEGER NOT NULL,
        start_ticks    INTEGER NOT NULL,
        started_ms     INTEGER NOT NULL,
        command        BLOB NOT NULL,  -- argv, a zero byte after each
        first_sequence INTEGER NOT NULL,
        ended_ms       INTEGER,        -- null: running, or died
        exit_code      INTEGER
      );
      CREATE INDEX run_open ON run(id) WHERE ended_ms IS NULL;
      CREATE TABLE run_file(
        id            INTEGER PRIMARY KEY,
        run           INTEGER NOT NULL,
        report_path   TEXT NOT NULL,
        compiler_path TEXT NOT NULL,
        model_path    TEXT NOT NULL,
        analysis      BLOB NOT NULL,
        chip_json     TEXT NOT NULL,
        plan          TEXT NOT NULL
      );
      CREATE INDEX run_file_run ON run_file(run);
    )sql"},
}};

std::string hint_of(const fs::path& file) {
  return "move " + file.string() +
         " away to begin with an empty store, or set LAYERFARM_CACHE_DIR to another folder";
}

std::int64_t pragma(SQLite::Database& db, const char* name) {
  return db.execAndGet(std::string("PRAGMA ") + name).getInt64();
}

Result<void> refuse_network(const fs::path& folder) {
  struct statfs info{};
  if (::statfs(folder.c_str(), &info) != 0) {
    return fail(base::os_error("cannot use the cache folder " + folder.string(), errno));
  }
  if (const auto name = network_file_system(static_cast<std::int64_t>(info.f_type))) {
    return fail(ErrorCode::InvalidInput, "the cache folder " + folder.string() +
                                             " is on a network file system (" + std::string(*name) +
                                             "), where locks and shared memory cannot be relied "
                                             "on; set LAYERFARM_CACHE_DIR to a folder on a "
                                             "disk of this machine");
  }
  return {};
}

Result<void> migrate(SQLite::Database& db, const fs::path& file, std::span<const Migration> steps) {
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  const std::int64_t version = pragma(db, "user_version");
  const std::int64_t application = pragma(db, "application_id");
  const bool fresh = version == 0 && application == 0 &&
                     db.execAndGet("SELECT count(*) FROM sqlite_master").getInt64() == 0;
  if (!fresh && application != kApplicationId) {
    return fail(ErrorCode::InvalidInput,
                file.string() +
                    " is an SQLite file of another program, not a store of layerfarm; " +
                    hint_of(file));
  }
  const int newest = steps.empty() ? 0 : steps.back().to;
  if (version > newest) {
    return fail(ErrorCode::Incompatible,
                "the store " + file.string() + " was written by a newer layerfarm (version " +
                    std::to_string(version) + " of its tables, this program knows " +
                    std::to_string(newest) + "); use that program, or " + hint_of(file));
  }
  if (fresh) db.exec("PRAGMA application_id=" + std::to_string(kApplicationId));
  for (const Migration& step : steps) {
    if (step.to <= version) continue;
    db.exec(step.sql);
    db.exec("PRAGMA user_version=" + std::to_string(step.to));
  }
  transaction.commit();
  return {};
}

/// The change to WAL needs the file for itself and does not wait as other statements do, so two
/// first starts may meet here.
void use_wal(SQLite::Database& db, base::Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (true) {
    try {
      if (std::string(db.execAndGet("PRAGMA journal_mode=WAL").getText()) == "wal") return;
      throw SQLite::Exception("this file system does not allow the store's shared memory",
                              SQLITE_CANTOPEN);
    } catch (const SQLite::Exception& error) {
      if (error.getErrorCode() != SQLITE_BUSY || std::chrono::steady_clock::now() >= deadline)
        throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

std::optional<std::string_view> network_file_system(std::int64_t magic) {
  // Some architectures sign-extend the field.
  switch (static_cast<std::uint32_t>(magic)) {
    case 0x00006969:
      return "NFS";
    case 0xFF534D42:
      return "CIFS";
    case 0x0000517B:
      return "SMB";
    case 0xFE534D42:
      return "SMB2";
    case 0x01021997:
      return "9p";
    case 0x5346414F:
    case 0x6B414653:
      return "AFS";
    case 0x00C36400:
      return "Ceph";
    case 0x0BD00BD0:
      return "Lustre";
    case 0x47504653:
      return "GPFS";
    case 0x19830326:
      return "BeeGFS";
    case 0x20030528:
      return "OrangeFS";
    case 0x73757245:
      return "Coda";
    case 0x7461636F:
      return "OCFS2";
    case 0x01161970:
      return "GFS2";
    case 0x0000564C:
      return "NCP";
    default:
      return std::nullopt;
  }
}

bool is_damage(const SQLite::Exception& error) {
  return error.getErrorCode() == SQLITE_CORRUPT || error.getErrorCode() == SQLITE_NOTADB;
}

base::Error database_error(const SQLite::Exception& error, const std::string& what,
                           const fs::path& file) {
  const std::string begin = what + ": ";
  switch (error.getErrorCode()) {
    case SQLITE_NOTADB:
      return {ErrorCode::Corrupt,
              begin + file.string() +
                  " is not a store of layerfarm, or its beginning is damaged; " + hint_of(file)};
    case SQLITE_CORRUPT:
      return {ErrorCode::Corrupt,
              begin + "the store " + file.string() + " is damaged; " + hint_of(file)};
    case SQLITE_FULL:
      return {ErrorCode::Unavailable, begin + "no room for the store " + file.string() +
                                          "; make room there (layerfarm cache prune helps)"};
    case SQLITE_IOERR:
      return {ErrorCode::Unavailable, begin + "the disk under the store " + file.string() +
                                          " does not do its work (" + error.getErrorStr() +
                                          "); see that it has room and is in order"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::Unavailable,
              begin + "another process holds the store " + file.string() + " for too long"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return {ErrorCode::InvalidInput,
              begin + "the store " + file.string() + " cannot be opened for writing (" +
                  error.what() +
                  "); see to its permissions, or set LAYERFARM_CACHE_DIR to another folder"};
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
    case SQLITE_FORMAT:
    case SQLITE_MISMATCH:
      // Our own statements are right, so the tables that they meet are not ours any more.
      return {ErrorCode::Corrupt, begin + "the tables of the store " + file.string() +
                                      " are damaged (" + error.what() + "); " + hint_of(file)};
    default:
      return {ErrorCode::Internal, begin + error.what() + " (" + file.string() +
                                       "); if this comes again, " + hint_of(file)};
  }
}

Result<SQLite::Database> open_database(const fs::path& folder, const DatabaseOptions& options) {
  std::error_code made;
  fs::create_directories(folder, made);
  if (made) {
    return fail(ErrorCode::InvalidInput, "cannot make the cache folder " + folder.string() + " (" +
                                             made.message() +
                                             "); set LAYERFARM_CACHE_DIR to another folder");
  }
  if (auto local = refuse_network(folder); !local) return fail(std::move(local.error()));
  const fs::path file = folder / kStoreFileName;
  try {
    const auto busy_ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(options.busy).count();
    SQLite::Database db(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                        static_cast<int>(busy_ms));
    // Only a file without tables takes this; it lets `cache prune` give room back.
    db.exec("PRAGMA auto_vacuum=INCREMENTAL");
    use_wal(db, options.busy);
    db.exec("PRAGMA synchronous=FULL");
    db.exec("PRAGMA cache_size=-8192");
    db.exec("PRAGMA journal_size_limit=67108864");
    if (auto done = migrate(db, file, options.steps); !done) return fail(std::move(done.error()));
    if (options.max_pages > 0)
      db.exec("PRAGMA max_page_count=" + std::to_string(options.max_pages));
    return db;
  } catch (const SQLite::Exception& error) {
    return fail(database_error(error, "cannot open the store", file));
  }
}

std::int64_t checksum_of(std::string_view bytes) {
  return static_cast<std::int64_t>(fingerprint_of(base::digest_of(bytes).view()));
}

std::int64_t checksum_of(const OutcomeRow& row) {
  base::Hasher hasher("layerfarm.store.row.1");
  hasher.add(row.sequence)
      .add(row.run)
      .add(row.stage)
      .add(row.ending)
      .add(row.took_us)
      .add(row.key)
      .add(row.body);
  return static_cast<std::int64_t>(fingerprint_of(hasher.finish().view()));
}

void append_segment_entry(std::string& bytes, const SegmentEntry& entry) {
  bytes.append(reinterpret_cast<const char*>(&entry.fingerprint), sizeof entry.fingerprint);
  bytes.push_back(entry.answers ? '\1' : '\0');
}

SegmentEntry segment_entry(std::string_view bytes, std::size_t index) {
  const std::string_view entry = bytes.substr(index * kSegmentEntryBytes, kSegmentEntryBytes);
  return {fingerprint_of(entry), entry[8] != '\0'};
}

}  // namespace layerfarm::coordinator::store
