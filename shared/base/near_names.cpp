#include "shared/base/near_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shared/base/text.h"

namespace layerfarm::base {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

struct Near {
  std::size_t distance = 0;
  std::string name;
};

std::vector<Near> by_distance(std::string_view name, std::vector<std::string> known) {
  std::vector<Near> out;
  out.reserve(known.size());
  for (std::string& each : known) {
    const std::size_t distance = edit_distance(name, each);
    out.push_back({distance, std::move(each)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Near& a, const Near& b) { return a.distance < b.distance; });
  return out;
}

}  // namespace

std::optional<std::string> find_any_case(const std::vector<std::string>& known,
                                         std::string_view name) {
  std::optional<std::string> out;
  bool several = false;
  for (const std::string& each : known) {
    if (each == name) return each;
    if (!equal_any_case(each, name)) continue;
    several = out.has_value();
    out = each;
  }
  return several ? std::nullopt : out;
}

std::vector<std::string> nearest(std::string_view name, std::vector<std::string> known,
                                 std::size_t count) {
  std::vector<std::string> out;
  for (Near& near : by_distance(name, std::move(known))) {
    if (out.size() == count) break;
    out.push_back(std::move(near.name));
  }
  return out;
}

std::vector<std::string> likely_meant(std::string_view name,
                                      const std::vector<std::string>& known) {
  std::vector<std::string> out;
  const std::vector<Near> all = by_distance(name, known);
  for (const Near& near : all) {
    if (near.distance > all.front().distance || 3 * near.distance > name.size()) break;
    out.push_back(near.name);
  }
  return out;
}

}  // namespace layerfarm::base
