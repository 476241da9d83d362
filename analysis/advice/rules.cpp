// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "results/records/point_facts.hpp"

namespace isoscale::analysis::advice {

using results::PointData;

double Rule::limit(std::string_view what) const {
  const auto found = std::ranges::find(thresholds, what, &Threshold::what);
  if (found == thresholds.end()) throw std::out_of_range("a rule without that threshold");
  return found->value;
}

std::span<const Rule> rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> joined;
    for (const auto table : {communication_rules(), compute_rules(), machine_rules()}) {
      joined.insert(joined.end(), table.begin(), table.end());
    }
    return joined;
  }();
  return all;
}

std::string short_place(const results::RunData& run, const PointData& point, int rank) {
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  const int world = world_rank(point, rank);
  if (facts == nullptr || facts->host.empty()) return fmt::format("rank {}", world);
  return fmt::format("rank {} ({})", world, facts->host);
}

}  // namespace isoscale::analysis::advice
