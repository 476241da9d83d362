// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/search_entry.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "analysis/predict/search.hpp"

namespace isoscale::analysis {

bool is_played(const SearchEntry& entry) {
  return entry.whole && std::isfinite(entry.whole->seconds);
}

std::vector<double> errors_of(std::span<const SearchEntry> known,
                              std::optional<workloads::stack::Schedule> schedule) {
  std::vector<double> errors;
  for (const SearchEntry& entry : known) {
    if (!is_played(entry) || (schedule && entry.schedule != *schedule)) continue;
    errors.push_back(entry.estimate / entry.seconds - 1);
  }
  return errors;
}

double slack_of(const SearchEntry& entry, std::span<const SearchEntry> known) {
  constexpr std::size_t enough = 3;
  const std::vector<double> errors = errors_of(known, entry.schedule);
  if (errors.size() < enough) return search_slack;
  return std::min(search_slack, std::max(0.0, std::ranges::max(errors)) + search_margin);
}

}  // namespace isoscale::analysis
