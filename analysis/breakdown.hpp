// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// Where the time of a traced step went, by DESIGN: exclusive categories in this priority.
namespace isoscale::analysis {

/// Seconds, mean over ranks (and over traced steps); sums to `step`.
struct Breakdown {
  double compute = 0, copies = 0, transfer = 0, wait = 0, bubble = 0, gap = 0, other = 0;
  double step = 0;
  double hidden_communication = 0;  ///< communication that ran while this rank computed or copied
};

struct BreakdownResult {
  std::optional<Breakdown> mean;   ///< absent without traces
  std::vector<int> ranks;          ///< traced ranks of the point, ascending
  std::vector<Breakdown> of_rank;  ///< one per entry of `ranks`, mean over traced steps
  double unaccounted = 0;  ///< share of the traced steps whose spans contradict each other; mean
  std::string missing;     ///< what could not be said, and why; "" when all could
};

/// compute: a compute op runs. copies: a Copy and no compute. transfer, wait, bubble: a
/// communication op of this rank runs and nothing above. Of a collective, until its last member has
/// arrived is wait, the rest transfer. Of an exchange, until the partner has arrived is
/// late-partner time; per rank, min(that, idle time of the free-network replay with this step's
/// measured op times) is bubble and the rest wait. gap: nothing of this rank runs. other: what the
/// sum leaves. Two things make it differ from 0: time that spans claim although they cannot have
/// run (before the previous op of their stream or an op they wait for had ended) is in no category,
/// so other grows; time that spans claim outside of their step is in one, so other shrinks.
/// `unaccounted` counts both as positive. Members that were not traced, or whose clocks are not
/// aligned, are named in `missing`.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point);

}  // namespace isoscale::analysis
