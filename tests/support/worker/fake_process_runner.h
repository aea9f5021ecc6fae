// FakeProcessRunner: a ProcessRunner without processes, for tests of what stands on top of it.
// Programs are functions; it applies the bounds to what they say they would do, so that a caller
// sees the same answers as from real children (tests/contract/process_runner_test.cpp holds both to
// that).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/process/process_runner.h"

namespace layerfarm::test {

/// What a program would do if nobody stopped it.
struct FakeRun {
  int exit_code = 0;
  int signal = 0;  ///< not 0: it ends by this signal
  std::string output = {};
  std::string errors = {};
  base::Duration takes{0};
  bool never_ends = false;  ///< until a bound or a cancel ends it
  std::int64_t memory_bytes = 0;
  std::int64_t file_bytes = 0;  ///< its largest file
};

/// What a resident would answer; `reply` counts when `run` is a plain success.
struct FakeAnswer {
  std::string reply;
  FakeRun run = {};
  bool dies = false;  ///< ends as `run` says instead of answering
};

class FakeProcessRunner final : public worker::process::ProcessRunner {
 public:
  using Program = std::function<FakeRun(const worker::process::Command&)>;
  using ResidentProgram =
      std::function<FakeAnswer(const worker::process::Command&, const std::string& request)>;

  /// By the last part of argv[0]. What is not registered does not exist.
  void add(const std::string& name, Program program) { programs_[name] = std::move(program); }
  void add_resident(const std::string& name, ResidentProgram program) {
    residents_[name] = std::move(program);
  }

  worker::process::ProcessResult run(const worker::process::Command& command,
                                     const worker::process::CancelToken& cancel) override;
  base::Result<std::unique_ptr<worker::process::Resident>> start(
      const worker::process::Command& command) override;

  /// Everything that was run or started, in order.
  [[nodiscard]] const std::vector<worker::process::Command>& commands() const { return commands_; }

 private:
  std::map<std::string, Program> programs_;
  std::map<std::string, ResidentProgram> residents_;
  std::vector<worker::process::Command> commands_;
};

}  // namespace layerfarm::test
