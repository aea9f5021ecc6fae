// layerfarm-worker: one slot, pinned to its cores, that connects to a coordinator and works for it.
#include <sched.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "shared/base/blob_folder.h"
#include "shared/base/build_info.h"
#include "shared/base/exit_code.h"
#include "shared/base/files.h"
#include "shared/base/leftovers.h"
#include "shared/base/places.h"
#include "worker/app/lease_runner.h"
#include "worker/app/real_stages.h"
#include "worker/app/worker_loop.h"
#include "worker/process/launcher.h"
#include "worker/process/posix_process_runner.h"
#include "worker/toolchain/cpu.h"
#include "worker/toolchain/describe.h"
#include "worker/toolchain/quantize_model.h"
#include "worker/toolchain/resident_helpers.h"

namespace {

using namespace layerfarm;
using base::ExitCode;

struct Arguments {
  std::string connect;
  std::string name = "worker";
  std::vector<int> cores;
  std::string chips_file;
  int parent = 0;
  bool describe = false;
  bool quantize = false;
};

int failed(const std::string& text) {
  std::cerr << "Error: " << text << "\n";
  return static_cast<int>(ExitCode::Failed);
}

int describe_machine() {
  const std::string request(std::istreambuf_iterator<char>(std::cin), {});
  auto answer = worker::toolchain::describe(request);
  if (!answer) return failed(answer.error().text());
  std::cout << *answer << "\n";
  return static_cast<int>(ExitCode::Success);
}

std::int64_t machine_memory() {
  struct sysinfo machine{};
  ::sysinfo(&machine);
  return static_cast<std::int64_t>(machine.totalram) * static_cast<std::int64_t>(machine.mem_unit);
}

/// One model for the command `quantize`: the request comes by standard input, the answer is a line.
int quantize_one(worker::process::Launcher& launcher) {
  const std::string request(std::istreambuf_iterator<char>(std::cin), {});
  const std::filesystem::path cache = base::cache_folder();
  const base::BlobFolder blobs(cache / "blobs");
  worker::process::PosixProcessRunner runner(launcher);
  base::sweep_leftovers(cache / "scratch");
  auto scratch = base::ScratchFolder::make(cache / "scratch", "quantize");
  if (!scratch) return failed(scratch.error().text());
  worker::process::CancelToken cancel;
  worker::toolchain::ResidentHelpers helpers(runner, blobs, cancel, {},
                                             scratch->path() / "helpers");
  worker::toolchain::StepContext context{runner,
                                         helpers,
                                         blobs,
                                         cancel,
                                         scratch->path(),
                                         {},
                                         worker::app::complete_limits({}, {}, machine_memory())};
  std::cout << worker::toolchain::quantize_model(request, context) << "\n";
  return static_cast<int>(ExitCode::Success);
}

/// Chips as the coordinator wrote them: a JSON array of chip descriptions.
base::Result<std::vector<domain::ChipSpec>> read_chips(const std::string& path) {
  auto text = base::read_file(path);
  if (!text) return base::fail(text.error());
  std::vector<domain::ChipSpec> out;
  const auto list = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array())
    return base::fail(base::ErrorCode::InvalidInput, path + ": not a JSON array of chips");
  for (const auto& item : list) {
    auto chip = domain::parse_chip(item.dump(), path);
    if (!chip) return base::fail(chip.error());
    out.push_back(std::move(*chip));
  }
  return out;
}

void pin_to(const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  // A core that has gone since the coordinator counted them is no reason not to work.
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    spdlog::warn("cannot pin this worker to its cores");
}

protocol::Hello introduce(const Arguments& arguments, const std::vector<domain::ChipSpec>& chips) {
  protocol::Hello hello;
  hello.software = "layerfarm-worker " + std::string(base::kVersion) + " (" +
                   std::string(base::build_commit()) + ")";
  hello.features = {"reader"};
  hello.name = arguments.name;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  hello.host = host;
  hello.pid = ::getpid();
  hello.cores = arguments.cores;
  hello.cpu_model = worker::toolchain::cpu_model();
  for (const domain::ChipSpec& chip : chips)
    hello.abilities.push_back(worker::toolchain::ability_for(chip));
  return hello;
}

int work(const Arguments& arguments, worker::process::Launcher& launcher) {
  sigset_t ours;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGTERM);
  ::sigaddset(&ours, SIGINT);
  ::sigprocmask(SIG_BLOCK, &ours, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  pin_to(arguments.cores);
  std::vector<domain::ChipSpec> chips;
  if (!arguments.chips_file.empty()) {
    auto read = read_chips(arguments.chips_file);
    if (!read) return failed(read.error().text());
    chips = std::move(*read);
  }
  const std::filesystem::path cache = base::cache_folder();
  const base::BlobFolder blobs(cache / "blobs");
  worker::process::PosixProcessRunner runner(launcher);
  base::sweep_leftovers(cache / "scratch");  // of workers that were killed
  auto scratch = base::ScratchFolder::make(cache / "scratch", "worker");
  if (!scratch) return failed(scratch.error().text());
  worker::process::CancelToken cancel;
  worker::toolchain::ResidentHelpers helpers(runner, blobs, cancel, arguments.cores,
                                             scratch->path() / "helpers");
  worker::app::RealStages stages;
  worker::app::LeaseRunner lease_runner(
      {scratch->path(), worker::app::MachineLock::standard_folder(), arguments.cores,
       machine_memory()},
      runner, helpers, blobs, stages);
  worker::app::LoopSettings settings{arguments.connect, introduce(arguments, chips),
                                     arguments.parent, launcher.pid()};
  return worker::app::serve(settings, cancel,
                            [&](const protocol::Lease& lease, worker::app::LeaseControl& control) {
                              lease_runner.run(lease, control);
                            });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One slot of a layerfarm: connects to a coordinator and works for it.",
               "layerfarm-worker");
  Arguments arguments;
  app.set_version_flag("--version", "layerfarm-worker " + std::string(base::kVersion) +
                                        " (commit " + std::string(base::build_commit()) + ")");
  app.add_option("--connect", arguments.connect, "Endpoint of the coordinator")
      ->type_name("ENDPOINT");
  app.add_option("--name", arguments.name, "Name shown to people")->capture_default_str();
  app.add_option("--cores", arguments.cores, "Cores to be pinned to")->delimiter(',');
  app.add_option("--chips", arguments.chips_file, "JSON array of the chips to serve")
      ->type_name("FILE");
  app.add_option("--parent", arguments.parent, "Leave when this process is gone")->type_name("PID");
  app.add_flag(
      "--describe", arguments.describe,
      "Read chips (a JSON array) from standard input and say what this machine has for them");
  app.add_flag("--quantize", arguments.quantize,
               "Read a request (JSON) from standard input, quantize its model and say how it went");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_default_logger(spdlog::stderr_color_mt("worker"));
  spdlog::set_pattern("%v");
  if (arguments.describe) return describe_machine();
  if (arguments.connect.empty() && !arguments.quantize)
    return failed("--connect is missing; start `layerfarm discover`, which starts its own workers");
  // Before any thread, socket or model exists: forking later would be slow and unsafe.
  auto launcher = worker::process::Launcher::start();
  if (!launcher) return failed(launcher.error().text());
  return arguments.quantize ? quantize_one(**launcher) : work(arguments, **launcher);
}
