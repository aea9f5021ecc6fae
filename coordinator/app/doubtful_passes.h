// DoubtfulPasses: results that are a success by the rule, though their numbers say that a person
// should look: small elements that only the greatest one lets through, and indices or masks that
// are off by one. Loop thread only.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/plan/case_book.h"
#include "coordinator/report/case_result.h"
#include "shared/domain/layer.h"

namespace layerfarm::coordinator::app {

/// What is doubtful about one result; empty texts: nothing.
struct Doubt {
  std::string forgiven;    ///< "120 of 128"
  std::string off_by_one;  ///< "3 of 10"
};
/// `edit`: what a person set for the layer; who has set the bound has decided, and is not asked
/// again.
[[nodiscard]] Doubt doubt_of(const domain::Layer& layer, const plan::CaseSettled& settled,
                             const report::CaseResult& result, const domain::ToleranceEdit& edit);

class DoubtfulPasses {
 public:
  /// Layer and executor are places; a later result replaces an earlier one.
  void note(std::size_t layer, std::size_t executor, const std::string& name, Doubt doubt);
  /// One line for each kind that there is, each naming layers and executors and what to do.
  [[nodiscard]] std::vector<std::string> lines(const std::string& line_start) const;

 private:
  struct Named {
    std::string name;  ///< "Add_s on htp"
    Doubt doubt;
  };
  std::map<std::pair<std::size_t, std::size_t>, Named> found_;
};

}  // namespace layerfarm::coordinator::app
