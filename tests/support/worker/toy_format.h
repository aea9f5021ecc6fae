// ToyFormat: a model format of the tests. It shows that everything behind the analyze job takes
// layers from any format.
//
// A toy model is a text, one operator a line: `<op> <output> <input>...`. A module is that line;
// every value is four floats.
#pragma once

#include "worker/toolchain/model_format.h"

namespace layerfarm::test {

class ToyFormat final : public worker::toolchain::ModelFormat {
 public:
  [[nodiscard]] std::string_view name() const override { return "toy"; }
  [[nodiscard]] bool reads(const std::string& file) const override {
    return file.ends_with(".toy");
  }
  worker::toolchain::FormatAnswer layers(const domain::AnalyzeRequest& request,
                                         worker::toolchain::StepContext& context) override;
  worker::toolchain::FormatLocations locations(const domain::AnalyzeRequest& request,
                                               const worker::toolchain::FormatAnswer& taken,
                                               worker::toolchain::StepContext& context) override;
};

}  // namespace layerfarm::test
