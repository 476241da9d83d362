// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/machines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "analysis/merge/identity.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/remarks.hpp"

namespace isoscale::analysis {
namespace {

/// Of each side all values that its curves have, by name.
using Values = std::map<std::string, std::vector<std::set<std::string>>>;

class Gatherer {
 public:
  explicit Gatherer(std::size_t sides) : sides_(sides) {}

  void add(const std::string& name, std::size_t side, const std::string& value) {
    auto& values = values_[name];
    values.resize(sides_);
    values[side].insert(value);
  }
  [[nodiscard]] const Values& values() const { return values_; }

 private:
  std::size_t sides_;
  Values values_;
};

void add_points(const SideCurve& curve, std::size_t side, Gatherer& into) {
  for (const PointReport& point : curve.curve.points) {
    const std::string ranks = ranks_text({point.data->ranks});
    into.add("nodes x ranks on each, of " + ranks, side,
             point.nodes
                 ? fmt::format("{} x {}", point.nodes->nodes,
                               point.nodes->fewest == point.nodes->most
                                   ? std::to_string(point.nodes->most)
                                   : fmt::format("{}-{}", point.nodes->fewest, point.nodes->most))
                 : std::to_string(point.data->nodes));
    into.add("streams of " + ranks, side, point.data->folded ? "played as one" : "as asked for");
  }
}

std::string absent(const std::string& name) { return bears_on_times(name) ? "unset" : "unknown"; }

}  // namespace

std::vector<MachineDifference> machine_differences(const std::vector<ComparedCurve>& curves,
                                                   const std::vector<Side>& sides) {
  Gatherer machines{sides.size()}, points{sides.size()};
  for (const ComparedCurve& curve : curves) {
    for (std::size_t side = 0; side < sides.size(); ++side) {
      if (!curve.sides[side]) continue;
      for (const auto& [name, value] : curve.sides[side]->joined->machine) {
        machines.add(name, side, value);
      }
      add_points(*curve.sides[side], side, points);
    }
  }
  std::vector<MachineDifference> found;
  for (const auto& [name, values] : machines.values()) {
    MachineDifference at{.name = name, .values = {}};
    for (const auto& of_side : values) {
      at.values.push_back(of_side.empty() ? absent(name)
                                          : fmt::format("{}", fmt::join(of_side, " | ")));
    }
    if (std::ranges::adjacent_find(at.values, std::ranges::not_equal_to{}) != at.values.end()) {
      found.push_back(std::move(at));
    }
  }
  for (const auto& [name, values] : points.values()) {
    MachineDifference at{.name = name, .values = {}};
    std::set<std::string> seen;
    for (const auto& of_side : values) {
      at.values.push_back(fmt::format("{}", fmt::join(of_side, " | ")));
      if (!of_side.empty()) seen.insert(at.values.back());
    }
    if (seen.size() > 1) found.push_back(std::move(at));
  }
  return found;
}

}  // namespace isoscale::analysis
