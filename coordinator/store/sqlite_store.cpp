#include "coordinator/store/sqlite_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <utility>

#include "coordinator/store/database.h"
#include "coordinator/store/log_writer.h"
#include "coordinator/store/outcome_index.h"
#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::store {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOutcomeColumns =
    "SELECT sequence, run, stage, ending, took_us, key, body, checksum FROM outcome ";

OutcomeRow row_of(SQLite::Statement& select) {
  OutcomeRow row;
  row.sequence = select.getColumn(0).getInt64();
  row.run = select.getColumn(1).getInt64();
  row.stage = select.getColumn(2).getInt();
  row.ending = select.getColumn(3).getInt();
  row.took_us = select.getColumn(4).getInt64();
  row.key = blob_view(select.getColumn(5));
  row.body = blob_view(select.getColumn(6));
  return row;
}

/// Steps from one place of a table to the next that can be read, past pages that cannot: each miss
/// doubles the step.
class Resync {
 public:
  explicit Resync(std::int64_t from) : from_(from) {}
  /// False when everything beyond was tried.
  [[nodiscard]] bool skip() {
    if (step_ > kFarthest) return false;
    from_ += step_;
    step_ *= 2;
    return true;
  }
  void reached(std::int64_t place) {
    from_ = place;
    step_ = 1;
  }
  [[nodiscard]] std::int64_t from() const { return from_; }

 private:
  static constexpr std::int64_t kFarthest = std::int64_t{1} << 40;
  std::int64_t from_;
  std::int64_t step_ = 1;
};

std::string joined_argv(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& argument : argv) {
    out += argument;
    out.push_back('\0');
  }
  return out;
}

std::vector<std::string> split_argv(std::string_view bytes) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\0'), bytes.size());
    out.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return out;
}

}  // namespace

struct SqliteStore::Impl {
  Impl(SQLite::Database read, SQLite::Database write, fs::path path,
       const SqliteStoreOptions& chosen)
      : options(chosen),
        file(std::move(path)),
        db(std::move(read)),
        select_outcome(db, std::string(kOutcomeColumns) + "WHERE sequence = ?1"),
        data_version(db, "PRAGMA data_version"),
        writer(std::move(write), file, options.retry) {}

  const SqliteStoreOptions options;
  const fs::path file;
  SQLite::Database db;  // the loop thread's own
  SQLite::Statement select_outcome;
  SQLite::Statement data_version;
  OutcomeIndex index;
  std::int64_t next_segment = 1;  // what lies before was taken into the index
  std::int64_t seen_data_version = -1;
  std::uint64_t last_ticket = 0;
  std::vector<std::string> messages;  // told with the next news
  bool told_damage = false;
  LogWriter writer;

  void tell_damage(const std::string& what) {
    if (std::exchange(told_damage, true)) return;  // one line for one damaged file
    messages.push_back("a part of the store " + file.string() + " is damaged (" + what +
                       "); what was recorded there is done again");
  }
  void tell(const SQLite::Exception& error, const std::string& what) {
    messages.push_back(database_error(error, what, file).text());
  }

  void index_row(std::string_view key, int ending, std::int64_t sequence) {
    if (key.size() != sizeof(base::Digest) ||
        !domain::answers_later_runs(static_cast<domain::Ending>(ending)))
      return;
    index.put(fingerprint_of(key), static_cast<std::uint64_t>(sequence));
  }

  /// Takes rows [first, end) into the index from the log itself, for a segment that cannot be used.
  void index_from_log(std::int64_t first, std::int64_t end) {
    Resync resync(first);
    while (true) {
      try {
        SQLite::Statement select(
            db, "SELECT sequence, ending, key FROM outcome WHERE sequence >= ?1 AND sequence < ?2");
        select.bind(1, resync.from());
        select.bind(2, end);
        while (select.executeStep()) {
          const std::int64_t sequence = select.getColumn(0).getInt64();
          index_row(blob_view(select.getColumn(2)), select.getColumn(1).getInt(), sequence);
          resync.reached(sequence + 1);
        }
        return;
      } catch (const SQLite::Exception& error) {
        if (!is_damage(error)) return tell(error, "the store could not be read");
        tell_damage("pages of the log");
        if (!resync.skip() || resync.from() >= end) return;
      }
    }
  }

  void index_segment(std::int64_t first, std::int64_t count, std::int64_t checksum,
                     std::string_view entries) {
    if (count < 0 || entries.size() != static_cast<std::size_t>(count) * kSegmentEntryBytes ||
        checksum_of(entries) != checksum) {
      tell_damage("a segment of the index");
      // The count is not to be believed either; the next segment takes over where it begins.
      return index_from_log(first, std::numeric_limits<std::int64_t>::max());
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const SegmentEntry entry = segment_entry(entries, static_cast<std::size_t>(i));
      if (entry.answers) index.put(entry.fingerprint, static_cast<std::uint64_t>(first + i));
    }
  }

  void load_segments() {
    Resync resync(next_segment);
    bool gap = false;
    while (true) {
      try {
        SQLite::Statement select(
            db,
            "SELECT first, count, checksum, entries FROM segment WHERE first >= ?1 ORDER BY first");
        select.bind(1, resync.from());
        while (select.executeStep()) {
          const std::int64_t first = select.getColumn(0).getInt64();
          const std::int64_t count = select.getColumn(1).getInt64();
          if (std::exchange(gap, false)) index_from_log(next_segment, first);
          index_segment(first, count, select.getColumn(2).getInt64(),
                        blob_view(select.getColumn(3)));
          next_segment = first + std::max<std::int64_t>(count, 1);
          resync.reached(next_segment);
        }
        break;
      } catch (const SQLite::Exception& error) {
        if (!is_damage(error)) return tell(error, "the store could not be read");
        tell_damage("pages of the index");
        gap = true;
        if (!resync.skip()) break;
      }
    }
    if (gap) index_from_log(next_segment, std::numeric_limits<std::int64_t>::max());
  }

  void refresh() {
    try {
      // Changes only when another connection (our writer's too) has committed.
      static_cast<void>(data_version.executeStep());
      const std::int64_t version = data_version.getColumn(0).getInt64();
      data_version.reset();
      if (version == seen_data_version) return;
      seen_data_version = version;
    } catch (const SQLite::Exception& error) {
      static_cast<void>(data_version.tryReset());
      return tell(error, "the store could not be read");
    }
    load_segments();
  }

  /// The row, checked; nothing (and a message) when it is damaged.
  std::optional<StoredOutcome> checked(SQLite::Statement& select) {
    const OutcomeRow row = row_of(select);
    const auto key = base::Digest::from_bytes(row.key);
    if (!key || select.getColumn(7).getInt64() != checksum_of(row)) {
      tell_damage("row " + std::to_string(row.sequence));
      return std::nullopt;
    }
    auto outcome = protocol::decode_outcome(row.body);
    if (!outcome) {
      messages.push_back("row " + std::to_string(row.sequence) + " of the store " + file.string() +
                         " cannot be understood (" + outcome.error().text() +
                         "); its work is done again");
      return std::nullopt;
    }
    return StoredOutcome{Sequence(static_cast<std::uint64_t>(row.sequence)),
                         RunId(static_cast<std::uint32_t>(row.run)), *key, std::move(*outcome)};
  }

  enum class Look { Found, Missing, Unusable };
  Look look(std::uint64_t sequence, const base::Digest& key, std::optional<StoredOutcome>& out) {
    try {
      select_outcome.bind(1, static_cast<std::int64_t>(sequence));
      const bool there = select_outcome.executeStep();
      if (there) out = checked(select_outcome);
      select_outcome.reset();
      if (!there) return Look::Missing;
      // Another key with the same first bytes: not ours, and not known.
      if (out && out->key != key) out.reset();
      return out ? Look::Found : Look::Unusable;
    } catch (const SQLite::Exception& error) {
      static_cast<void>(select_outcome.tryReset());
      if (is_damage(error)) {
        tell_damage("the page of row " + std::to_string(sequence));
      } else {
        tell(error, "the store could not be read");
      }
      return Look::Unusable;
    }
  }
};

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SqliteStore::~SqliteStore() {
  if (impl_) static_cast<void>(impl_->writer.close(impl_->options.patience));
}

base::Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const fs::path& cache_folder,
                                                             const SqliteStoreOptions& options) {
  const fs::path file = cache_folder / kStoreFileName;
  const DatabaseOptions database{.busy = options.busy, .max_pages = options.max_pages};
  auto read = open_database(cache_folder, database);
  if (!read) return base::fail(std::move(read.error()));
  auto write = open_database(cache_folder, database);
  if (!write) return base::fail(std::move(write.error()));
  try {
    auto impl = std::make_unique<Impl>(std::move(*read), std::move(*write), file, options);
    impl->refresh();
    return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
  } catch (const SQLite::Exception& error) {
    return base::fail(database_error(error, "cannot open the store", file));
  }
}

base::Result<RunId> SqliteStore::begin_run(const RunStart& start) {
  try {
    SQLite::Transaction transaction(impl_->db, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(
        impl_->db,
        "INSERT INTO run(host, pid, start_ticks, started_ms, command, first_sequence) VALUES(?1, "
        "?2, ?3, ?4, "
        "?5, coalesce((SELECT first + count FROM segment ORDER BY first DESC LIMIT 1), 1))");
    const std::string command = joined_argv(start.command);
    insert.bind(1, start.process.host);
    insert.bind(2, start.process.pid);
    insert.bind(3, static_cast<std::int64_t>(start.process.start_ticks));
    insert.bind(4, start.started_ms);
    insert.bind(5, command.data(), static_cast<int>(command.size()));
    insert.exec();
    const auto id = static_cast<std::uint32_t>(impl_->db.getLastInsertRowid());
    transaction.commit();
    return RunId(id);
  } catch (const SQLite::Exception& error) {
    return base::fail(database_error(error, "cannot begin a run", impl_->file));
  }
}

Ticket SqliteStore::append(std::vector<Fact> facts) {
  const Ticket ticket(++impl_->last_ticket);
  impl_->writer.submit(ticket, std::move(facts));
  return ticket;
}

int SqliteStore::fd() const { return impl_->writer.written().fd(); }

News SqliteStore::take_news() {
  News news;
  for (Written& written : impl_->writer.written().take()) {
    news.trouble = std::move(
        written.trouble);  // of the latest commit only: a success after it means there is none now
    if (written.durable.value() == 0) continue;
    news.durable = written.durable;
    for (std::size_t i = 0; i * kSegmentEntryBytes < written.entries.size(); ++i) {
      const SegmentEntry entry = segment_entry(written.entries, i);
      if (entry.answers) impl_->index.put(entry.fingerprint, written.first + i);
    }
  }
  news.messages = std::exchange(impl_->messages, {});
  return news;
}

void SqliteStore::refresh() { impl_->refresh(); }

std::optional<StoredOutcome> SqliteStore::find(const base::Digest& key) {
  const std::uint64_t fingerprint = fingerprint_of(key.view());
  // Another process may have compacted the log: then what it left in its place is newer.
  for (const bool again : {true, false}) {
    const auto sequence = impl_->index.find(fingerprint);
    if (!sequence) return std::nullopt;
    std::optional<StoredOutcome> out;
    switch (impl_->look(*sequence, key, out)) {
      case Impl::Look::Found:
        return out;
      case Impl::Look::Unusable:
        return std::nullopt;
      case Impl::Look::Missing:
        break;
    }
    impl_->index.drop(fingerprint, *sequence);
    if (again) impl_->refresh();
  }
  return std::nullopt;
}

std::vector<StoredOutcome> SqliteStore::outcomes_of(RunId run, Which which) {
  std::vector<StoredOutcome> out;
  try {
    SQLite::Statement select(
        impl_->db,
        std::string(kOutcomeColumns) + (which == Which::NotAnswering
                                            ? "WHERE run = ?1 AND ending > 2 ORDER BY sequence"
                                            : "WHERE sequence >= (SELECT first_sequence FROM run "
                                              "WHERE id = ?1) AND run = ?1 ORDER BY sequence"));
    select.bind(1, static_cast<std::int64_t>(run.value()));
    while (select.executeStep()) {
      if (auto row = impl_->checked(select)) out.push_back(std::move(*row));
    }
  } catch (const SQLite::Exception& error) {
    impl_->tell(error,
                "the outcomes of run " + std::to_string(run.value()) + " could not all be read");
  }
  return out;
}

std::vector<RunRecord> SqliteStore::runs(bool only_open) {
  std::vector<RunRecord> out;
  try {
    SQLite::Statement select(impl_->db,
                             std::string("SELECT id, host, pid, start_ticks, started_ms, command, "
                                         "ended_ms, exit_code FROM run ") +
                                 (only_open ? "WHERE ended_ms IS NULL " : "") + "ORDER BY id");
    SQLite::Statement files(
        impl_->db,
        "SELECT report_path, compiler_path, model_path, analysis, chip_json, plan FROM run_file "
        "WHERE run = ?1 ORDER BY id");
    while (select.executeStep()) {
      RunRecord run;
      run.id = RunId(select.getColumn(0).getUInt());
      run.start.process.host = select.getColumn(1).getString();
      run.start.process.pid = select.getColumn(2).getInt64();
      run.start.process.start_ticks = static_cast<std::uint64_t>(select.getColumn(3).getInt64());
      run.start.started_ms = select.getColumn(4).getInt64();
      run.start.command = split_argv(blob_view(select.getColumn(5)));
      run.ended = !select.getColumn(6).isNull();
      run.ended_ms = select.getColumn(6).getInt64();
      run.exit_code = select.getColumn(7).getInt();
      files.bind(1, static_cast<std::int64_t>(run.id.value()));
      while (files.executeStep()) {
        RunFile file;
        file.report_path = files.getColumn(0).getString();
        file.compiler_path = files.getColumn(1).getString();
        file.model_path = files.getColumn(2).getString();
        if (const auto digest = base::Digest::from_bytes(blob_view(files.getColumn(3))))
          file.analysis = *digest;
        file.chip_json = files.getColumn(4).getString();
        file.plan = files.getColumn(5).getString();
        run.files.push_back(std::move(file));
      }
      files.reset();
      out.push_back(std::move(run));
    }
  } catch (const SQLite::Exception& error) {
    impl_->tell(error, "the list of runs could not be read");
  }
  return out;
}

TypicalTimes SqliteStore::typical_times() {
  TypicalTimes out{};
  try {
    // Rows of one kind of work lie together; this many hold a few hundred of each stage.
    SQLite::Statement select(
        impl_->db,
        "SELECT stage, avg(took_us) FROM (SELECT stage, took_us, ending FROM outcome "
        "ORDER BY sequence DESC LIMIT 4096) WHERE ending = 1 GROUP BY stage");
    while (select.executeStep()) {
      const int stage = select.getColumn(0).getInt();
      if (stage < 0 || stage >= static_cast<int>(out.size())) continue;
      out[static_cast<std::size_t>(stage)] =
          static_cast<std::int64_t>(select.getColumn(1).getDouble());
    }
  } catch (const SQLite::Exception& error) {
    impl_->tell(error, "the times of earlier work could not be read");
  }
  return out;
}

base::Result<void> SqliteStore::close() { return impl_->writer.close(impl_->options.patience); }

SqliteStore::Sizes SqliteStore::sizes() {
  Sizes out;
  out.keys = impl_->index.size();
  out.index_bytes = impl_->index.memory_bytes();
  try {
    out.outcomes =
        static_cast<std::uint64_t>(impl_->db.execAndGet("SELECT count(*) FROM outcome").getInt64());
    out.runs =
        static_cast<std::uint64_t>(impl_->db.execAndGet("SELECT count(*) FROM run").getInt64());
    out.open_runs = static_cast<std::uint64_t>(
        impl_->db.execAndGet("SELECT count(*) FROM run WHERE ended_ms IS NULL").getInt64());
  } catch (const SQLite::Exception& error) {
    impl_->tell(error, "the store could not be counted");
  }
  return out;
}

base::Result<std::uint64_t> SqliteStore::compact() {
  constexpr std::size_t kRowsPerCommit = 1000;  // other processes write between two of these
  impl_->refresh();
  std::uint64_t removed = 0;
  try {
    // Runs that died are over as well, once the files of their folder were brought up to date; that
    // ends them here too.
    std::vector<std::int64_t> gone;
    {
      SQLite::Statement left(impl_->db,
                             "SELECT sequence FROM outcome WHERE ending > 2 AND run IN "
                             "(SELECT id FROM run WHERE ended_ms IS NOT NULL)");
      while (left.executeStep()) gone.push_back(left.getColumn(0).getInt64());
      SQLite::Statement segments(impl_->db, "SELECT first, entries FROM segment ORDER BY first");
      while (segments.executeStep()) {
        const std::int64_t first = segments.getColumn(0).getInt64();
        const std::string_view entries = blob_view(segments.getColumn(1));
        for (std::size_t i = 0; (i + 1) * kSegmentEntryBytes <= entries.size(); ++i) {
          const SegmentEntry entry = segment_entry(entries, i);
          const std::int64_t sequence = first + static_cast<std::int64_t>(i);
          const auto latest = impl_->index.find(entry.fingerprint);
          if (entry.answers && latest && *latest > static_cast<std::uint64_t>(sequence))
            gone.push_back(sequence);
        }
      }
    }
    std::sort(gone.begin(), gone.end());
    SQLite::Statement remove(impl_->db, "DELETE FROM outcome WHERE sequence = ?1");
    for (std::size_t begin = 0; begin < gone.size(); begin += kRowsPerCommit) {
      SQLite::Transaction transaction(impl_->db, SQLite::TransactionBehavior::IMMEDIATE);
      for (std::size_t i = begin; i < std::min(gone.size(), begin + kRowsPerCommit); ++i) {
        remove.bind(1, gone[i]);
        removed += static_cast<std::uint64_t>(remove.exec());
        remove.reset();
      }
      transaction.commit();
    }
    SQLite::Statement vacuum(impl_->db, "PRAGMA incremental_vacuum");
    while (vacuum.executeStep()) {
    }
    return removed;
  } catch (const SQLite::Exception& error) {
    return base::fail(database_error(error, "the store could not be made smaller", impl_->file));
  }
}

}  // namespace layerfarm::coordinator::store
