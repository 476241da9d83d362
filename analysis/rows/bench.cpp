// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/bench.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "analysis/rank_facts.hpp"

namespace isoscale::analysis {
namespace {

/// A row's datasheet is that of its ranks' GPUs, if these are all of one kind.
class Datasheets {
 public:
  Datasheets(const results::RunData& run, const results::PointData& point) {
    for (int rank = 0; rank < point.ranks; ++rank) {
      const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
      of_rank_.push_back(facts == nullptr ? nullptr : datasheet_of(*facts));
    }
    for (const Datasheet* const at : of_rank_) {
      if (at != of_rank_.front()) all_alike_ = false;
    }
  }
  [[nodiscard]] const Datasheet* of(const results::RowData& row) const {
    if (of_rank_.empty()) return nullptr;
    if (row.ranks.empty()) return all_alike_ ? of_rank_.front() : nullptr;
    const Datasheet* const first = at(row.ranks.front());
    const bool alike = std::ranges::all_of(row.ranks, [&](int r) { return at(r) == first; });
    return alike ? first : nullptr;
  }

 private:
  [[nodiscard]] const Datasheet* at(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return rank >= 0 && index < of_rank_.size() ? of_rank_[index] : nullptr;
  }
  std::vector<const Datasheet*> of_rank_;
  bool all_alike_ = true;
};

}  // namespace

bool is_bench(const results::PointData& point) {
  constexpr std::array<std::string_view, 9> names{"gemm",      "collectives", "p2p",
                                                  "memory",    "overlap",     "algorithms",
                                                  "calibrate", "infer",       "serve"};
  return !point.rows.empty() ||
         (point.step_times.empty() && std::ranges::find(names, point.workload) != names.end());
}

BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                         const results::CalibrationData& calibration) {
  BenchReport report;
  const Datasheets datasheets{run, point};
  report.rows.reserve(point.rows.size());
  for (const results::RowData& row : point.rows) {
    report.rows.push_back(
        report_row(row, {.calibration = &calibration, .datasheet = datasheets.of(row)}));
  }
  report.pairs = merge_pairs(report.rows);
  report.classes = classes_of(report.pairs);
  report.slow = slow_pairs(report.pairs, point, run.rank_facts);
  report.overlaps = merge_overlaps(report.rows);
  return report;
}

}  // namespace isoscale::analysis
