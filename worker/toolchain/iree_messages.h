// What iree-compile prints, split into messages and laid at the door of the layers of a batch.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace layerfarm::worker::toolchain {

/// One message: a line `file:line:column: error: text` and what follows up to the next such line.
struct CompilerMessage {
  std::uint32_t line = 0;  ///< in the module's text; 0 when the compiler did not know
  bool error = false;      ///< else a warning, note or remark
  std::string text;        ///< without place and kind
  std::string whole;       ///< all of it
};
[[nodiscard]] std::vector<CompilerMessage> split_messages(const std::string& printed);

struct LineRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// A layer as it stands in a batch's module.
struct BatchLayer {
  std::string function;
  std::vector<LineRange> lines;  ///< its functions
};

/// Whom the errors of a refused batch are about.
struct Blame {
  std::vector<std::optional<std::string>>
      text;  ///< per layer: what was said about it, when something was
  /// Every error belongs to one layer by its place: the texts are what each layer alone would have
  /// got. Else they may be cut short.
  bool complete = true;
  [[nodiscard]] bool any() const;
};
[[nodiscard]] Blame blame(const std::vector<CompilerMessage>& messages,
                          const std::vector<BatchLayer>& layers);

/// The text for people of a refusal that one layer caused alone: all errors, each once.
[[nodiscard]] std::string refusal_text(const std::vector<CompilerMessage>& messages,
                                       const std::string& function);
/// What a crashed compiler said before its stack trace.
[[nodiscard]] std::string crash_text(const std::string& printed);

}  // namespace layerfarm::worker::toolchain
