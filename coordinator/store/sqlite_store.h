// SqliteStore: the store in `<cache folder>/store.sqlite`, shared safely by any number of processes
// of this machine. Owns a connection for reading (loop thread) and a LogWriter with one of its own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/store/store.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::store {

struct SqliteStoreOptions {
  base::Duration busy =
      std::chrono::seconds(10);  ///< how long to wait for another process's commit
  base::Duration retry = std::chrono::seconds(1);     ///< pause after a commit that failed
  base::Duration patience = std::chrono::seconds(2);  ///< at the end, for a disk that refuses
  std::int64_t max_pages = 0;  ///< greatest size in pages; 0 = as much as the disk holds
};

class SqliteStore final : public Store {
 public:
  /// The folder is made when it is missing. Errors say what to do.
  [[nodiscard]] static base::Result<std::unique_ptr<SqliteStore>> open(
      const std::filesystem::path& cache_folder, const SqliteStoreOptions& options = {});
  ~SqliteStore() override;

  [[nodiscard]] base::Result<RunId> begin_run(const RunStart& start) override;
  Ticket append(std::vector<Fact> facts) override;
  [[nodiscard]] int fd() const override;
  [[nodiscard]] News take_news() override;
  void refresh() override;
  [[nodiscard]] std::optional<StoredOutcome> find(const base::Digest& key) override;
  [[nodiscard]] std::vector<StoredOutcome> outcomes_of(RunId run, Which which) override;
  [[nodiscard]] std::vector<RunRecord> runs(bool only_open) override;
  [[nodiscard]] TypicalTimes typical_times() override;

  /// Waits until all is on disk; gives up as the options say. The destructor does the same and
  /// tells nobody.
  [[nodiscard]] base::Result<void> close();

  struct Sizes {
    std::uint64_t keys = 0;      ///< that answer later runs
    std::uint64_t outcomes = 0;  ///< rows of the log
    std::uint64_t runs = 0;
    std::uint64_t open_runs = 0;
    std::uint64_t index_bytes = 0;  ///< in this process's memory
  };
  [[nodiscard]] Sizes sizes();
  /// Takes out of the log what nobody can ask for any more: answers that a later one of the same
  /// key replaced, and what did not answer in runs that are over. Other processes may go on
  /// meanwhile. Returns the number of rows.
  [[nodiscard]] base::Result<std::uint64_t> compact();

 private:
  struct Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace layerfarm::coordinator::store
