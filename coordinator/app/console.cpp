#include "coordinator/app/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "shared/base/text.h"

namespace layerfarm::coordinator::app {
namespace fs = std::filesystem;

base::Result<Console> Console::open(const Settings& settings) {
  Console console(settings);
  if (settings.log_file.empty()) return console;
  const fs::path path(settings.log_file);
  std::error_code ignored;  // the open below reports what matters
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ignored);
  console.file_.reset(std::fopen(settings.log_file.c_str(), "we"));
  if (!console.file_)
    return base::fail(base::os_error("cannot write the log file " + settings.log_file, errno));
  return console;
}

Console::Console(Settings settings)
    : settings_(std::move(settings)), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Console::to_console(std::string_view text) {
  if (settings_.quiet) return;
  clear_live();
  std::string line = base::printable(text);
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Console::to_file(std::string_view text) {
  if (!file_) return;
  std::string line = base::printable(text);
  line += '\n';
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size();
  if (std::fflush(file_.get()) == 0 && written) return;
  const int error = errno;
  std::clearerr(file_.get());  // it is tried again: a disk may have room later
  log_failed(error);
}

/// Also when quiet: then the log file was to be all that is said.
void Console::log_failed(int error) {
  if (log_failure_said_) return;
  log_failure_said_ = true;
  clear_live();
  const std::string line = base::printable("[LogFile] cannot write " + settings_.log_file + ": " +
                                           std::generic_category().message(error) +
                                           "; lines will be missing there, and the work goes on");
  std::fprintf(stderr, "%s\n", line.c_str());
}

void Console::say(std::string_view text) {
  to_console(text);
  to_file(text);
}

void Console::say_verbose(std::string_view text) {
  if (settings_.verbose) say(text);
}

void Console::say_detail(std::string_view text) {
  if (file_) {
    to_file(text);
  } else if (settings_.verbose) {
    to_console(text);
  }
}

void Console::error(std::string_view text) {
  const std::string line = "Error: " + base::printable(text);
  // Also when quiet: an exit code alone helps nobody.
  clear_live();
  std::fprintf(stderr, "%s\n", line.c_str());
  to_file(line);
}

void Console::say_coloured(std::string_view coloured, std::string_view plain) {
  to_console(terminal_ ? coloured : plain);
  to_file(plain);
}

void Console::live(std::string_view line) {
  if (!terminal_ || settings_.quiet) return;
  // A line wider than the terminal would wrap and could not be taken back.
  std::string text = "\r\x1b[K";
  text += base::printable(line).substr(0, width() > 1 ? width() - 1 : 1);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  live_shown_ = true;
}

void Console::clear_live() {
  if (!live_shown_) return;
  std::fputs("\r\x1b[K", stderr);
  live_shown_ = false;
}

std::size_t Console::width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace layerfarm::coordinator::app
