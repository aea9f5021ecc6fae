#include "coordinator/plan/case_settled.h"

#include <algorithm>

namespace layerfarm::coordinator::plan {
namespace {

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

std::string skip_text(const CaseSettled& settled, const std::string& executor,
                      const std::string& other, const std::string& source) {
  if (settled.how == How::Copied || settled.how == How::CopiedOld)
    return "duplicate of " + source + ", result copied";
  switch (settled.skip) {
    case SkipReason::ExecutorInSkipList:
      return "executor in the skip list";
    case SkipReason::OpInSkipList:
      return "op type in the skip list";
    case SkipReason::AlreadyWorks:
      return "layer already works with " + other;
    case SkipReason::DuplicateNotTested:
      return "duplicate of " + source + ", but that one was not tested on " + upper(executor);
  }
  return {};
}

}  // namespace layerfarm::coordinator::plan
