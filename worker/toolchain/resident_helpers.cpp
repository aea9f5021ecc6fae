#include "worker/toolchain/resident_helpers.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "shared/base/onnxruntime_library.h"
#include "worker/toolchain/diagnostic.h"
#include "worker/toolchain/programs.h"
#include "worker/toolchain/tool_step.h"

namespace layerfarm::worker::toolchain {
namespace {

namespace fs = std::filesystem;
using domain::Ending;
using nlohmann::json;

/// A request in a raw report: whole where it is short, for some list hundreds of layers.
std::string shortened(const std::string& request) {
  return request.size() <= 4096
             ? request
             : request.substr(0, 4096) + "... (" + std::to_string(request.size()) + " bytes)";
}

}  // namespace

struct ResidentHelpers::Child {
  HelperKind kind;
  std::unique_ptr<process::Resident> resident;
  process::Command command;  ///< what it was started with
  int jobs = 0;
};

HelperKind ResidentHelpers::ort_kind() {
  HelperKind kind;
  kind.name = "layerfarm-ort";
  kind.argv = {own_program("layerfarm-ort").string()};
  kind.needed = {own_program("layerfarm-ort"), base::onnxruntime_library()};
  kind.how_to_get =
      "install layerfarm again (in a checkout: run scripts/setup), or set ONNXRUNTIME_ROOT to an "
      "unpacked release";
  return kind;
}

HelperKind ResidentHelpers::sidecar_kind() {
  HelperKind kind;
  kind.name = "sidecar";
  // -I: nothing of the user's Python settings, folders or packages gets in.
  kind.argv = {python_program().string(), "-I", sidecar_script().string()};
  kind.needed = {python_program(), sidecar_script()};
  kind.how_to_get = how_to_install("iree");
  kind.most_jobs = 1000;
  return kind;
}

ResidentHelpers::ResidentHelpers(process::ProcessRunner& runner, const base::BlobFolder& blobs,
                                 const process::CancelToken& cancel, std::vector<int> cores,
                                 fs::path folder)
    : ResidentHelpers(runner, blobs, cancel, std::move(cores), std::move(folder), ort_kind(),
                      sidecar_kind()) {}

ResidentHelpers::ResidentHelpers(process::ProcessRunner& runner, const base::BlobFolder& blobs,
                                 const process::CancelToken& cancel, std::vector<int> cores,
                                 fs::path folder, HelperKind ort, HelperKind sidecar)
    : runner_(runner),
      blobs_(blobs),
      cancel_(cancel),
      cores_(std::move(cores)),
      folder_(std::move(folder)),
      ort_(std::make_unique<Child>()),
      sidecar_(std::make_unique<Child>()) {
  ort_->kind = std::move(ort);
  sidecar_->kind = std::move(sidecar);
}

ResidentHelpers::~ResidentHelpers() = default;

HelperAnswer ResidentHelpers::ort(const std::string& request, const process::Bounds& bounds) {
  return ask(*ort_, request, bounds);
}
HelperAnswer ResidentHelpers::sidecar(const std::string& request, const process::Bounds& bounds) {
  return ask(*sidecar_, request, bounds);
}

HelperAnswer ResidentHelpers::make_ready(Child& child, const process::Bounds& bounds) {
  HelperAnswer out;
  const HelperKind& kind = child.kind;
  if (child.resident && (!child.resident->alive() || child.jobs >= kind.most_jobs ||
                         child.resident->memory_bytes() > kind.most_memory_bytes ||
                         child.command.bounds.memory_bytes != bounds.memory_bytes)) {
    child.resident.reset();
  }
  if (child.resident) {
    out.ending = Ending::Done;
    return out;
  }
  std::error_code error;
  for (const fs::path& file : kind.needed) {
    if (fs::exists(file, error)) continue;
    out.diagnostic = diagnostic(kind.name, "not started",
                                kind.name + " cannot start: " + file.filename().string() +
                                    " is missing; " + kind.how_to_get);
    return out;
  }
  fs::create_directories(folder_, error);
  child.command = {
      .argv = kind.argv, .environment = {}, .folder = folder_, .cores = cores_, .bounds = bounds};
  auto started = runner_.start(child.command);
  if (!started) {
    out.diagnostic = diagnostic(kind.name, "not started", started.error().text());
    return out;
  }
  child.resident = std::move(*started);
  child.jobs = 0;
  out.ending = Ending::Done;
  return out;
}

HelperAnswer ResidentHelpers::ask(Child& child, const std::string& request,
                                  const process::Bounds& bounds) {
  HelperAnswer out = make_ready(child, bounds);
  if (out.ending != Ending::Done) return out;
  ++child.jobs;
  process::ResidentReply reply = child.resident->call(request, bounds.wall, cancel_);
  ToolCall call{.command = child.command, .where = child.kind.name, .tool = child.kind.name};
  const auto raw = [&](const std::string& text) {
    const auto blob = blobs_.put("request: " + shortened(request) + "\n" + text);
    return blob ? *blob : base::Digest{};
  };
  if (!reply.answered) {
    child.resident.reset();
    // A helper that ends by itself in the middle of a request, with whatever exit code, did not
    // refuse: it died.
    out.ending = reply.end.ended == process::Ended::Exited ? Ending::Crashed : ending_of(reply.end);
    if (out.ending == Ending::Cancelled) return out;
    out.diagnostic.where = child.kind.name;
    out.diagnostic.cause = reply.end.ended == process::Ended::Exited
                               ? "crashed: exit code " + std::to_string(reply.end.exit_code)
                               : cause_of(reply.end, bounds);
    out.diagnostic.text =
        normalised(reply.end.errors.text.empty() ? reply.end.output.text : reply.end.errors.text);
    out.diagnostic.raw = raw(raw_report(call, reply.end));
    return out;
  }
  const std::string printed = child.resident->take_printed();
  const json answer = json::parse(reply.reply, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) {
    child.resident.reset();  // it lost its thread; the next request gets a fresh one
    out.ending = Ending::Crashed;
    out.diagnostic = diagnostic(child.kind.name, "crashed: answer is no JSON object", "");
    out.diagnostic.raw = raw("answer: " + shortened(reply.reply) + "\n--- printed\n" + printed);
    return out;
  }
  out.json = std::move(reply.reply);
  if (answer["ok"].get<bool>()) {
    out.ending = Ending::Done;
    return out;
  }
  const auto text_of = [&answer](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  out.ending = Ending::Refused;
  out.diagnostic = diagnostic(text_of("where"), "refused", normalised(text_of("text")));
  out.diagnostic.raw = raw("answer: " + text_of("text") + "\n--- printed\n" + printed);
  return out;
}

}  // namespace layerfarm::worker::toolchain
