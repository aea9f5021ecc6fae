// Small models and chips for tests of planning, and a book of what is known.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/plan/case_book.h"
#include "tests/support/outcomes.h"

namespace layerfarm::test {

namespace plan = coordinator::plan;

class KnownOutcomes final : public plan::Known {
 public:
  std::shared_ptr<const domain::Outcome> find(const base::Digest& key) override {
    ++asked;
    const auto at = outcomes.find(key);
    return at == outcomes.end() ? nullptr : at->second;
  }
  std::map<base::Digest, std::shared_ptr<const domain::Outcome>> outcomes;
  int asked = 0;
};

/// Same `kind` = same work. `weights` differ only in float constants.
inline domain::Layer layer(const std::string& id, const std::string& kind,
                           const std::string& weights = "") {
  domain::Layer out;
  out.id = id;
  out.op_type = id.substr(0, id.find('_'));
  out.signature = key_of(kind + "/" + weights);
  out.loose_signature = key_of(kind);
  out.module.blob = key_of("module " + kind + "/" + weights);
  return out;
}

inline std::shared_ptr<domain::ModelAnalysis> model(std::vector<domain::Layer> layers) {
  auto out = std::make_shared<domain::ModelAnalysis>();
  out->layers = std::move(layers);
  for (std::uint32_t i = 0; i < out->layers.size(); ++i) out->layers[i].orig_index = i;
  return out;
}

inline std::shared_ptr<plan::PlanChip> chip(const std::string& name,
                                            const std::vector<std::string>& executors) {
  auto out = std::make_shared<plan::PlanChip>();
  out->spec.name = name;
  out->spec.target = name;
  out->spec.toolchain = "test";
  for (const std::string& executor : executors) {
    domain::ExecutorSpec spec;
    spec.name = executor;
    out->spec.executors.push_back(spec);
  }
  out->tool.version = "1";
  out->place = "this cpu";
  return out;
}

inline plan::PlanRequest request(std::shared_ptr<const domain::ModelAnalysis> analysis,
                                 std::vector<std::shared_ptr<const plan::PlanChip>> chips) {
  plan::PlanRequest out;
  out.run = plan::RunId(1);
  out.model = std::move(analysis);
  out.chips = std::move(chips);
  out.reference.version = "reference 1";
  return out;
}

}  // namespace layerfarm::test
