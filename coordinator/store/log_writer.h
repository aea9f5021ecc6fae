// LogWriter: the thread that writes the store. Facts come in through a mailbox, what has become
// durable goes out through one. Every commit takes all that is waiting (up to a bound, so that
// other processes get their turn); commits keep a distance, so that single facts share one.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/store/store.h"
#include "shared/base/mailbox.h"
#include "shared/base/result.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::store {

/// What one commit did, or why it did not.
struct Written {
  Ticket durable;                      ///< 0 when nothing became durable by this
  std::optional<base::Error> trouble;  ///< the facts are kept and tried again
  std::uint64_t first = 0;             ///< sequence of the first outcome of the commit
  std::string entries;                 ///< the segment's entries, for the index
};

class LogWriter {
 public:
  /// `retry`: pause after a commit that failed.
  LogWriter(SQLite::Database database, std::filesystem::path file, base::Duration retry);
  /// As close with no patience.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void submit(Ticket ticket, std::vector<Fact> facts);
  [[nodiscard]] base::Mailbox<Written>& written() { return written_; }
  /// Writes what is waiting and ends the thread. Gives up on a disk that refuses once `patience` is
  /// over, and says how much was lost.
  [[nodiscard]] base::Result<void> close(base::Duration patience);

 private:
  struct Batch {
    Ticket ticket;
    std::vector<Fact> facts;
  };
  struct Order {
    std::optional<Batch> batch;
    std::optional<base::Time> stop_at;  ///< close: try until then
  };
  struct Statements;
  struct Next {
    std::size_t batches = 0;  ///< of waiting_, from its front
    bool full = false;        ///< as many facts as one commit takes
  };

  void run();
  [[nodiscard]] base::Result<Written> commit(std::size_t batches);
  [[nodiscard]] Next next_commit() const;

  base::Mailbox<Order> inbox_;
  base::Mailbox<Written> written_;
  const std::filesystem::path file_;
  const base::Duration retry_;
  std::thread thread_;
  // The thread's own from here on; read by `close` after joining.
  SQLite::Database database_;
  std::unique_ptr<Statements> statements_;
  std::deque<Batch> waiting_;
};

}  // namespace layerfarm::coordinator::store
