// Console: what a command says while it works. Standard error for people, tee'd to the log file;
// standard output belongs to results. A log file that cannot be written any more is said once and
// ends nothing.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "shared/base/result.h"

namespace layerfarm::coordinator::app {

class Console {
 public:
  struct Settings {
    bool verbose = false;
    bool quiet = false;  ///< nothing but errors on the console; the log file still gets everything
    std::string log_file;  ///< truncated first, parents made
  };
  /// InvalidInput when the log file cannot be written.
  static base::Result<Console> open(const Settings& settings);
  Console(Console&&) noexcept = default;
  Console& operator=(Console&&) noexcept = default;

  /// One or more lines (without the last newline).
  void say(std::string_view text);
  /// Only with --verbose (console and file alike).
  void say_verbose(std::string_view text);
  /// Long diagnostics: the log file always gets them, the console only with --verbose and without a
  /// log file.
  void say_detail(std::string_view text);
  /// `Error: ` and the text.
  void error(std::string_view text);
  /// Text with colours for the terminal and without for the file.
  void say_coloured(std::string_view coloured, std::string_view plain);
  /// Replaces the live line at the bottom; does nothing when standard error is no terminal.
  void live(std::string_view line);
  void clear_live();

  [[nodiscard]] bool terminal() const { return terminal_; }
  [[nodiscard]] bool verbose() const { return settings_.verbose; }
  /// Nothing that is said goes anywhere: formatting it would be for nothing.
  [[nodiscard]] bool silent() const { return settings_.quiet && !file_; }
  /// Columns of the terminal, 80 when unknown.
  [[nodiscard]] static std::size_t width();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit Console(Settings settings);
  void to_console(std::string_view text);
  void to_file(std::string_view text);
  void log_failed(int error);

  Settings settings_;
  bool terminal_ = false;
  bool live_shown_ = false;
  bool log_failure_said_ = false;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace layerfarm::coordinator::app
