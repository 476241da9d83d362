// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "analysis/breakdown/breakdown.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// The efficiencies of the POP Centre of Excellence (co-design.pop-coe.eu/metrics); each is the
/// product of the two below it. Useful time of a rank: compute and copies of its traced steps.
///   global = parallel * computation scalability (= work * speed)
///   parallel = load balance (mean / largest useful time) * communication
///   communication (largest useful / step) = serialisation (largest useful / step on a network
///   that takes no time) * transfer (that step / measured step; gaps are part of it)
struct Pop {
  double load_balance = 1, communication = 1, parallel = 1;
  std::optional<double> serialisation, transfer;  ///< absent without a replay
  /// Against the baseline, per unit of work: useful time; FLOP; FLOP per useful second.
  std::optional<double> computation_scalability, work_scalability, speed_scalability;
  std::optional<double> global;
};

/// The work of a point, which its computation scalability needs.
struct UsefulWork {
  double useful = 0;  ///< seconds over all ranks
  double work = 0;    ///< work_per_step
  double flop = 0;    ///< over all ranks; 0 = not known
};
[[nodiscard]] std::optional<UsefulWork> useful_work(const results::PointData& point,
                                                    const BreakdownResult& breakdown);

/// The op sums tell the useful time of ranks that were not traced. Absent without traces, without
/// useful time, and where some rank's is not known. Without `baseline` there is nothing above
/// parallel.
[[nodiscard]] std::optional<Pop> pop(const results::PointData& point,
                                     const BreakdownResult& breakdown,
                                     const std::optional<UsefulWork>& baseline);

}  // namespace isoscale::analysis
