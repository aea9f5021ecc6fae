#include "coordinator/store/log_writer.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "coordinator/store/database.h"
#include "shared/protocol/codec.h"

namespace layerfarm::coordinator::store {
namespace {

/// A commit of this many facts takes some ten milliseconds: others wait no longer than that.
constexpr std::size_t kCommitFacts = 4096;
/// Commits are at least so far apart: facts that come one by one share the disk's flush. A flush
/// also holds up whoever else changes folders on that disk, as every tool step does.
constexpr auto kBetweenCommits = std::chrono::milliseconds(10);

std::int64_t now_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct LogWriter::Statements {
  explicit Statements(SQLite::Database& db)
      : next(db, "SELECT first + count FROM segment ORDER BY first DESC LIMIT 1"),
        outcome(db,
                "INSERT INTO outcome(sequence, run, stage, ending, took_us, key, checksum, body) "
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
        segment(db, "INSERT INTO segment(first, count, checksum, entries) VALUES(?1, ?2, ?3, ?4)"),
        run_file(db,
                 "INSERT INTO run_file(run, report_path, compiler_path, model_path, analysis, "
                 "chip_json, plan) "
                 "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
        run_ended(db, "UPDATE run SET ended_ms = ?2, exit_code = ?3 WHERE id = ?1") {}

  SQLite::Statement next;
  SQLite::Statement outcome;
  SQLite::Statement segment;
  SQLite::Statement run_file;
  SQLite::Statement run_ended;

  /// After a failure in the middle of a commit; a statement that failed is used again only after
  /// this.
  void reset() {
    for (SQLite::Statement* statement : {&next, &outcome, &segment, &run_file, &run_ended}) {
      static_cast<void>(statement->tryReset());
    }
  }
};

namespace {

void bind_blob(SQLite::Statement& statement, int index, std::string_view bytes) {
  // An empty blob needs an address, else SQLite takes it for null.
  statement.bindNoCopy(index, bytes.empty() ? "" : bytes.data(), static_cast<int>(bytes.size()));
}

void execute(SQLite::Statement& statement) {
  statement.exec();
  statement.reset();
}

}  // namespace

LogWriter::LogWriter(SQLite::Database database, std::filesystem::path file, base::Duration retry)
    : file_(std::move(file)), retry_(retry), database_(std::move(database)) {
  statements_ = std::make_unique<Statements>(database_);
  thread_ = std::thread([this] { run(); });
}

LogWriter::~LogWriter() { static_cast<void>(close(base::Duration::zero())); }

void LogWriter::submit(Ticket ticket, std::vector<Fact> facts) {
  inbox_.put({.batch = Batch{ticket, std::move(facts)}, .stop_at = {}});
}

base::Result<void> LogWriter::close(base::Duration patience) {
  if (!thread_.joinable()) return {};
  inbox_.put({.batch = {}, .stop_at = base::MonotonicClock().now() + patience});
  thread_.join();
  if (waiting_.empty()) return {};
  std::size_t lost = 0;
  for (const Batch& batch : waiting_) lost += batch.facts.size();
  return base::fail(base::ErrorCode::Unavailable,
                    "the store " + file_.string() +
                        " could not be written: " + std::to_string(lost) +
                        " facts are not kept; their work is done again by the next run");
}

LogWriter::Next LogWriter::next_commit() const {
  Next out;
  std::size_t facts = 0;
  for (; out.batches < waiting_.size() && facts < kCommitFacts; ++out.batches) {
    facts += waiting_[out.batches].facts.size();
  }
  out.full = facts >= kCommitFacts;
  return out;
}

void LogWriter::run() {
  const base::MonotonicClock clock;
  std::optional<base::Time> stop_at;
  base::Time try_at{0};  // not before; a full commit waits only after a failure
  bool failing = false;
  while (true) {
    int wait_ms = -1;
    if (!waiting_.empty()) {
      const base::Duration wait = !failing && next_commit().full
                                      ? base::Duration::zero()
                                      : std::max(try_at - clock.now(), base::Duration::zero());
      wait_ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
    } else if (stop_at) {
      return;
    }
    pollfd inbox{.fd = inbox_.fd(), .events = POLLIN, .revents = 0};
    static_cast<void>(
        ::poll(&inbox, 1, wait_ms));  // an interrupted wait only comes round once more
    for (Order& order : inbox_.take()) {
      if (order.batch) waiting_.push_back(std::move(*order.batch));
      if (order.stop_at) {
        stop_at = order.stop_at;
        try_at = base::Time{0};
      }
    }
    if (waiting_.empty()) continue;
    const Next next = next_commit();
    if (clock.now() < try_at && (failing || !next.full)) continue;

    base::Result<Written> written = commit(next.batches);
    failing = !written;
    if (written) {
      waiting_.erase(waiting_.begin(),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(next.batches));
      try_at = stop_at ? base::Time{0} : clock.now() + kBetweenCommits;
      written_.put(std::move(*written));
    } else {
      Written failed;
      failed.trouble = std::move(written.error());
      written_.put(std::move(failed));
      if (stop_at && clock.now() >= *stop_at) return;
      try_at = clock.now() + retry_;
      if (stop_at) try_at = std::min(try_at, *stop_at);
    }
  }
}

base::Result<Written> LogWriter::commit(std::size_t batches) {
  try {
    SQLite::Transaction transaction(database_, SQLite::TransactionBehavior::IMMEDIATE);
    Written out;
    out.first = 1;
    if (statements_->next.executeStep())
      out.first = static_cast<std::uint64_t>(statements_->next.getColumn(0).getInt64());
    statements_->next.reset();

    std::int64_t sequence = static_cast<std::int64_t>(out.first);
    for (std::size_t i = 0; i < batches; ++i) {
      for (const Fact& fact : waiting_[i].facts) {
        if (const auto* outcome = std::get_if<OutcomeFact>(&fact)) {
          const base::Bytes body = protocol::encode_outcome(*outcome->outcome);
          const OutcomeRow row{sequence,
                               outcome->run.value(),
                               static_cast<int>(outcome->outcome->stage),
                               static_cast<int>(outcome->outcome->ending),
                               outcome->outcome->took_us,
                               outcome->key.view(),
                               body};
          SQLite::Statement& insert = statements_->outcome;
          insert.bind(1, row.sequence);
          insert.bind(2, row.run);
          insert.bind(3, row.stage);
          insert.bind(4, row.ending);
          insert.bind(5, row.took_us);
          bind_blob(insert, 6, row.key);
          insert.bind(7, checksum_of(row));
          bind_blob(insert, 8, row.body);
          execute(insert);
          append_segment_entry(out.entries, {fingerprint_of(row.key),
                                             domain::answers_later_runs(outcome->outcome->ending)});
          ++sequence;
        } else if (const auto* file = std::get_if<RunFileFact>(&fact)) {
          SQLite::Statement& insert = statements_->run_file;
          insert.bind(1, static_cast<std::int64_t>(file->run.value()));
          insert.bind(2, file->file.report_path);
          insert.bind(3, file->file.compiler_path);
          insert.bind(4, file->file.model_path);
          bind_blob(insert, 5, file->file.analysis.view());
          insert.bind(6, file->file.chip_json);
          insert.bind(7, file->file.plan);
          execute(insert);
        } else if (const auto* ended = std::get_if<RunEndedFact>(&fact)) {
          SQLite::Statement& update = statements_->run_ended;
          update.bind(1, static_cast<std::int64_t>(ended->run.value()));
          update.bind(2, now_ms());
          update.bind(3, ended->exit_code);
          execute(update);
        }
      }
    }
    if (!out.entries.empty()) {
      SQLite::Statement& insert = statements_->segment;
      insert.bind(1, static_cast<std::int64_t>(out.first));
      insert.bind(2, static_cast<std::int64_t>(out.entries.size() / kSegmentEntryBytes));
      insert.bind(3, checksum_of(out.entries));
      bind_blob(insert, 4, out.entries);
      execute(insert);
    }
    transaction.commit();
    out.durable = waiting_[batches - 1].ticket;
    return out;
  } catch (const SQLite::Exception& error) {
    statements_->reset();
    return base::fail(database_error(
        error, "results could not be stored (they are kept and tried again)", file_));
  }
}

}  // namespace layerfarm::coordinator::store
