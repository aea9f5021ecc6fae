// Numbers as text for people and JSON: the shortest decimal form that reads back to the same
// double, written as Python's repr does.
#pragma once

#include <string>

namespace layerfarm::base {

/// "0.01", "1e-05", "3.0", "1e+16"; "nan", "inf" and "-inf" for what is no number.
[[nodiscard]] std::string number_text(double value);

}  // namespace layerfarm::base
