// Outcomes for tests: short to write, different where they should be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/domain/outcome.h"

namespace layerfarm::test {

inline base::Digest key_of(const std::string& name) { return base::digest_of(name); }

inline domain::Comparison comparison_with(double max_rel, std::uint64_t total = 100) {
  domain::Comparison out;
  out.dtype = domain::DType::Float32;
  out.total = total;
  out.max_abs = max_rel * 2;
  out.max_rel = max_rel;
  out.max_expected = 1;
  out.mean_abs = max_rel / 2;
  out.mean_rel = max_rel / 3;
  out.required_max_tol = max_rel;
  out.max_rel_above.fill(max_rel);
  return out;
}

/// The tool ran; its output is off by `max_rel` (relative) where it is off most.
inline std::shared_ptr<const domain::Outcome> executed(double max_rel,
                                                       std::int64_t took_us = 1000) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = domain::Stage::Execute;
  out->ending = domain::Ending::Done;
  out->executed = domain::Executed{
      .outputs = {comparison_with(max_rel)}, .expected_outputs = 1, .run_us = took_us};
  out->took_us = took_us;
  out->tool = "test 1";
  return out;
}

inline std::shared_ptr<const domain::Outcome> prepared(std::int64_t took_us = 500) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = domain::Stage::Prepare;
  out->ending = domain::Ending::Done;
  out->prepared = domain::Prepared{
      .inputs = {key_of("in")}, .expected = {key_of("out")}, .reference = "reference 1"};
  out->took_us = took_us;
  return out;
}

inline std::shared_ptr<const domain::Outcome> compiled(std::int64_t took_us = 2000) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = domain::Stage::Compile;
  out->ending = domain::Ending::Done;
  out->artifact =
      domain::Artifact{.blob = key_of("artifact"), .function = "main", .compile_us = took_us};
  out->took_us = took_us;
  return out;
}

inline std::shared_ptr<const domain::Outcome> failed(domain::Stage stage, domain::Ending ending,
                                                     const std::string& text) {
  auto out = std::make_shared<domain::Outcome>();
  out->stage = stage;
  out->ending = ending;
  out->diagnostic = {.where = "compile", .cause = "refused", .text = text};
  out->took_us = 100;
  return out;
}

}  // namespace layerfarm::test
