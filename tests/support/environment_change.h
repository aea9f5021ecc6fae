// EnvironmentChange: an environment variable set or taken away for the length of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace layerfarm::tests {

class EnvironmentChange {
 public:
  /// No value: the variable is taken away.
  EnvironmentChange(std::string name, const std::optional<std::string>& value)
      : name_(std::move(name)) {
    if (const char* const now = std::getenv(name_.c_str())) before_ = now;
    set(value);
  }
  ~EnvironmentChange() { set(before_); }
  EnvironmentChange(const EnvironmentChange&) = delete;
  EnvironmentChange& operator=(const EnvironmentChange&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    value ? ::setenv(name_.c_str(), value->c_str(), 1) : ::unsetenv(name_.c_str());
  }

  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace layerfarm::tests
