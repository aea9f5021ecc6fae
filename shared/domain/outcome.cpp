#include "shared/domain/outcome.h"

namespace layerfarm::domain {

std::string_view stage_name(Stage stage) {
  switch (stage) {
    case Stage::Analyze:
      return "analyze";
    case Stage::Prepare:
      return "prepare";
    case Stage::Compile:
      return "compile";
    case Stage::Execute:
      return "execute";
    case Stage::Recompare:
      return "recompare";
    case Stage::Time:
      return "time";
    case Stage::Whole:
      return "whole";
  }
  return "unknown";
}

std::string_view ending_name(Ending ending) {
  switch (ending) {
    case Ending::Done:
      return "done";
    case Ending::Refused:
      return "refused";
    case Ending::Crashed:
      return "crashed";
    case Ending::TimedOut:
      return "timed out";
    case Ending::OverMemory:
      return "over memory";
    case Ending::OverOutput:
      return "over output";
    case Ending::Infrastructure:
      return "infrastructure";
    case Ending::LostBlob:
      return "lost blob";
    case Ending::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace layerfarm::domain
