// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/distinct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace isoscale::analysis {
namespace {

/// By what was measured first: a copy from before a run was gone on with may call itself complete.
auto content(const results::RunData& run) {
  const auto measured =
      std::ranges::count(run.points, results::PointStatus::ok, &results::PointData::status);
  return std::tuple{measured, run.complete, run.points.size(), run.ended};
}

bool holds_more(const results::RunData& a, const results::RunData& b) {
  return content(a) > content(b);
}

}  // namespace

RunFiles without_copies(RunFiles given) {
  RunFiles kept;
  kept.warnings = std::move(given.warnings);
  for (std::size_t i = 0; i < given.runs.size(); ++i) {
    results::RunData& run = given.runs[i];
    std::string& file = given.files[i];
    const auto known = run.id.empty() ? kept.runs.end()
                                      : std::ranges::find(kept.runs, run.id, &results::RunData::id);
    if (known == kept.runs.end()) {
      kept.runs.push_back(std::move(run));
      kept.files.push_back(std::move(file));
      continue;
    }
    std::string& other = kept.files[static_cast<std::size_t>(known - kept.runs.begin())];
    if (holds_more(run, *known)) {
      std::swap(run, *known);
      std::swap(file, other);
    }
    kept.warnings.push_back(file == other
                                ? fmt::format("{} was given more than once; it counts once", file)
                                : fmt::format("{} holds run {} as {} does; it counts once, as in "
                                              "the latter",
                                              file, known->id, other));
  }
  return kept;
}

}  // namespace isoscale::analysis
