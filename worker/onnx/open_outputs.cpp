#include "worker/onnx/open_outputs.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace layerfarm::worker::onnx {
namespace {

struct Rule {
  std::string_view op_type;
  std::int64_t last_opset;  ///< up to and with this one
  int first_output;         ///< this result of the operator and all after it
};

constexpr std::int64_t kEveryOpset = std::numeric_limits<std::int64_t>::max();

/// By the operators' texts in ONNX's docs/Changelog.md. Only what a text leaves open for whatever
/// is fed: not single elements (a Cast out of range), nor orders that may differ (an unsorted
/// TopK).
constexpr Rule kRules[] = {
    // Dropout 1, 6: "If is_test is nonzero, this output is not filled." Dropout 7, 10: "The output
    // mask.", though in test mode the output is "a simple copy of the input" and no mask is made.
    // From 12 on the mask takes part in the formula of the output.
    {"Dropout", 11, 1},
    // BatchNormalization 1 to 9: saved_mean and saved_var are "used during training to speed up
    // gradient computation"; in what form, nothing says. From 14 on they are gone.
    {"BatchNormalization", 13, 3},
    // Random numbers: a seed is of one implementation, and without one no two runs agree.
    {"Bernoulli", kEveryOpset, 0},
    {"Multinomial", kEveryOpset, 0},
    {"RandomNormal", kEveryOpset, 0},
    {"RandomNormalLike", kEveryOpset, 0},
    {"RandomUniform", kEveryOpset, 0},
    {"RandomUniformLike", kEveryOpset, 0},
};

/// Whether a Dropout draws what it drops. From 12 on its third input says so, and a missing one
/// says no; one that is fed is drawn as false (input_rules). Older ones never do, but for those
/// before 7, which are refused.
bool drops_at_random(const pb::NodeProto& node, std::int64_t opset, const Constants& constants) {
  if (node.op_type() != "Dropout") return false;
  if (opset < 12 || node.input_size() < 3) return false;
  const Constant* training = constants.find(node.input(2));
  const auto flag = training == nullptr ? std::nullopt : training->integers();
  return flag && flag->size() == 1 && flag->front() != 0;
}

}  // namespace

std::vector<std::uint32_t> open_outputs(const pb::NodeProto& node, std::int64_t opset,
                                        const std::vector<std::string>& outputs,
                                        const Constants& constants) {
  std::vector<std::uint32_t> out;
  if (!in_default_domain(node)) return out;
  const auto open_from = [&](int first) {
    for (int i = first; i < node.output_size(); ++i) {
      const auto found = std::find(outputs.begin(), outputs.end(), node.output(i));
      if (found != outputs.end())
        out.push_back(static_cast<std::uint32_t>(found - outputs.begin()));
    }
  };
  if (drops_at_random(node, opset, constants)) {
    open_from(0);
    return out;
  }
  for (const Rule& rule : kRules) {
    if (node.op_type() == rule.op_type && opset <= rule.last_opset) open_from(rule.first_output);
  }
  return out;
}

}  // namespace layerfarm::worker::onnx
