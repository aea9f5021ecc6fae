// Typed ids: a number that cannot be mixed up with the number of another kind of thing.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace layerfarm::base {

template <typename Tag, typename Rep = std::uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  Rep value_ = 0;
};

}  // namespace layerfarm::base

template <typename Tag, typename Rep>
struct std::hash<layerfarm::base::StrongId<Tag, Rep>> {
  std::size_t operator()(layerfarm::base::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
