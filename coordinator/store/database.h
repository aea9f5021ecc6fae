// The store's file: where it is, what is in it, how it is opened. Everything that touches SQLite
// goes through here or is beside it; SQLite's exceptions become Errors in this folder and never
// leave it.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/digest.h"
#include "shared/base/result.h"
#include "shared/base/time.h"

namespace layerfarm::coordinator::store {

inline constexpr const char* kStoreFileName = "store.sqlite";

/// One step from a version of the tables to the next; steps only go forward and are never edited
/// once released.
struct Migration {
  int to = 0;       ///< PRAGMA user_version afterwards; before it was `to - 1`
  const char* sql;  ///< run inside one transaction
};
[[nodiscard]] std::span<const Migration> migrations();

struct DatabaseOptions {
  base::Duration busy =
      std::chrono::seconds(10);  ///< how long to wait for another process's commit
  std::int64_t max_pages = 0;    ///< greatest size in pages; 0 = none of our own
  std::span<const Migration> steps = migrations();
};

/// Opens or makes `<folder>/store.sqlite`, in WAL mode with synchronous=FULL, and brings its tables
/// up to date. Refuses a folder on a network file system, files that are no store, and stores of a
/// newer program, each with what to do.
[[nodiscard]] base::Result<SQLite::Database> open_database(const std::filesystem::path& folder,
                                                           const DatabaseOptions& options);

/// Name of the network file system that has this statfs magic; nothing for a local one.
[[nodiscard]] std::optional<std::string_view> network_file_system(std::int64_t magic);

/// What an SQLite exception means for the store `file`: code, and a text with what to do.
[[nodiscard]] base::Error database_error(const SQLite::Exception& error, const std::string& what,
                                         const std::filesystem::path& file);

/// Whether the failure says that bytes of the file are damaged (and not, say, that the disk is
/// full).
[[nodiscard]] bool is_damage(const SQLite::Exception& error);

/// Columns of a row of the table `outcome`; `key` and `body` are views of the statement's or the
/// caller's bytes.
struct OutcomeRow {
  std::int64_t sequence = 0;
  std::int64_t run = 0;
  int stage = 0;
  int ending = 0;
  std::int64_t took_us = 0;
  std::string_view key;
  std::string_view body;
};
/// Over every column, the place in the log included: a row that was moved is as damaged as one that
/// was changed.
[[nodiscard]] std::int64_t checksum_of(const OutcomeRow& row);
[[nodiscard]] std::int64_t checksum_of(std::string_view bytes);

/// Blob column as a view that lives until the statement moves on.
[[nodiscard]] inline std::string_view blob_view(const SQLite::Column& column) {
  const void* data = column.getBlob();
  return {static_cast<const char*>(data), static_cast<std::size_t>(column.getBytes())};
}

/// What the index in memory keeps of a key.
[[nodiscard]] inline std::uint64_t fingerprint_of(std::string_view key) {
  std::uint64_t out = 0;
  std::memcpy(&out, key.data(), sizeof out);
  return out;
}

/// A segment is the outcomes of one commit, as the index wants them: kSegmentEntryBytes each.
inline constexpr std::size_t kSegmentEntryBytes = 9;
struct SegmentEntry {
  std::uint64_t fingerprint = 0;
  bool answers = false;  ///< domain::answers_later_runs
};
void append_segment_entry(std::string& bytes, const SegmentEntry& entry);
[[nodiscard]] SegmentEntry segment_entry(std::string_view bytes, std::size_t index);

}  // namespace layerfarm::coordinator::store
