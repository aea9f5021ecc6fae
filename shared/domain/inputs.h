// Random inputs, bit for bit as NumPy's default_rng gives them (spec section 22).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/domain/tensor.h"

namespace layerfarm::domain {

/// One driven input of a layer.
struct InputSpec {
  TensorType type;
  /// Values are drawn from [lo, hi): integers as such, floats uniform. Set by the reader of the
  /// model: [-40,40), [0,80) for unsigned, the table's range where the values reach an index or a
  /// shape.
  double lo = -40;
  double hi = 40;
  /// Not empty: these are the values (row major), nothing is drawn. For inputs that say a shape,
  /// axes or a count, where no range gives a valid layer.
  std::vector<double> values = {};
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

/// Seed of the original tool; others need NumPy's SeedSequence.
inline constexpr std::uint64_t kInputSeed = 1234;

/// NumPy's PCG64 (XSL-RR) as `default_rng(seed)` starts it, with the draws that the spec lists.
class Pcg64 {
 public:
  /// Any seed below 2^64, by NumPy's SeedSequence.
  explicit Pcg64(std::uint64_t seed);
  std::uint64_t next64();
  /// Low half of a fresh word first, then its kept high half.
  std::uint32_t next32();
  /// [0,1), 53 bits.
  double next_double();
  /// Bounded draws of NumPy's Generator.integers for 64- and 32-bit types: [lo, lo + span).
  std::uint64_t bounded64(std::uint64_t span);
  std::uint32_t bounded32(std::uint32_t span);

 private:
  __extension__ using Word = unsigned __int128;
  Word state_ = 0;
  Word increment_ = 0;
  bool has_high_half_ = false;
  std::uint32_t high_half_ = 0;
};

/// Draws all inputs with one generator, in `draw_order` (indices into `inputs`); the result is in
/// the order of `inputs`. InvalidInput for a type that has no rule (strings, float8 ...), naming
/// the type.
[[nodiscard]] base::Result<std::vector<Tensor>> draw_inputs(
    const std::vector<InputSpec>& inputs, const std::vector<std::uint32_t>& draw_order,
    std::uint64_t seed);

}  // namespace layerfarm::domain
