#include "coordinator/store/outcome_index.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

using layerfarm::coordinator::store::OutcomeIndex;

TEST_CASE("the index answers as a map that keeps the greatest place would") {
  CHECK(rc::check([] {
    OutcomeIndex index;
    std::map<std::uint64_t, std::uint64_t> model;
    const auto steps =
        *rc::gen::container<std::vector<std::tuple<bool, std::uint8_t, std::uint16_t>>>(
            rc::gen::tuple(rc::gen::arbitrary<bool>(), rc::gen::arbitrary<std::uint8_t>(),
                           rc::gen::arbitrary<std::uint16_t>()));
    for (const auto& [put, low, place] : steps) {
      // Few fingerprints, which all begin their search near one another.
      const std::uint64_t fingerprint = std::uint64_t{low} << (low % 3 == 0 ? 0 : 20);
      const std::uint64_t sequence = std::uint64_t{place} + 1;
      auto at = model.find(fingerprint);
      if (put) {
        index.put(fingerprint, sequence);
        if (at == model.end())
          model[fingerprint] = sequence;
        else
          at->second = std::max(at->second, sequence);
      } else if (at != model.end() && place % 2 == 0) {
        index.drop(fingerprint, at->second);
        model.erase(at);
      } else {
        index.drop(fingerprint,
                   at == model.end() ? sequence : at->second + 1);  // points elsewhere: stays
      }
    }
    RC_ASSERT(index.size() == model.size());
    for (std::uint64_t low = 0; low < 256; ++low) {
      const std::uint64_t fingerprint = low << (low % 3 == 0 ? 0 : 20);
      const auto at = model.find(fingerprint);
      RC_ASSERT(index.find(fingerprint) ==
                (at == model.end() ? std::optional<std::uint64_t>{} : at->second));
    }
  }));
}

TEST_CASE("a million keys take under 64 bytes each") {
  OutcomeIndex index;
  std::uint64_t state = 1;
  for (std::uint64_t i = 1; i <= 1'000'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    index.put(state ^ (state >> 29U), i);
  }
  CHECK(index.size() > 999'000);
  CHECK(index.memory_bytes() < 64'000'000);
}
