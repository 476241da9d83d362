// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "mesh/mesh.hpp"
#include "results/run_data.hpp"

/// Where a point lost efficiency: the factors of POP, and the waterfall of lost time by cause.
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

/// The costs of a traced step by cause; seconds, mean over ranks. The parts sum to the breakdown's
/// step. The time of an op is its median over steps, and what it takes more on average is noise. Of
/// ranks that play the same program the middle one is typical, of two the faster, and what others
/// take more is imbalance.
struct StepCosts {
  double gemm = 0;  ///< GEMMs of typical ranks, as traced
  /// The same played without communication, and what they took more beside it. Where nothing was
  /// hidden nothing was beside them, and all is the former; else absent without solo times.
  std::optional<double> gemm_alone{}, gemm_overlap{};
  double other_compute = 0, copies = 0;
  std::map<mesh::AxisSet, double> transfer;  ///< exposed
  /// Transfer and waiting together; absent where both are known apart.
  std::optional<double> communication{};
  double bubble = 0;                       ///< what the schedule asks for, where that is known
  std::optional<double> imbalance, noise;  ///< absent where waiting could not be divided
  double waiting = 0;                      ///< imbalance and noise together
  double uneven = 0;   ///< of the imbalance, what is known without dividing any waiting
  double hiccups = 0;  ///< likewise of the noise
  double gap = 0, other = 0;
};

/// Absent without a breakdown.
[[nodiscard]] std::optional<StepCosts> step_costs(const results::PointData& point,
                                                  const BreakdownResult& breakdown);

/// The time that one cause added to a step, against ideal scaling from the baseline.
struct LostTime {
  std::string cause;   ///< "GEMMs", "dp transfer", ...
  double seconds = 0;  ///< below 0 where the point has less of it than its share of the baseline
};

/// From the ideal step to the measured one: ideal + the sum of all lost = measured, exactly but for
/// rounding.
struct Waterfall {
  double ideal = 0;                  ///< seconds: the baseline's step, scaled by work and ranks
  double measured = 0;               ///< seconds
  std::vector<LostTime> lost;        ///< in order of DESIGN's causes, zeros included
  std::vector<std::string> missing;  ///< what could not be separated, one sentence each
  /// False where the causes say little of the loss: the untraced steps, which the loss is of,
  /// differ from the traced ones by more than a tenth of the measured step, or fewer steps count
  /// than an interval needs. Reports then give no shares of causes.
  bool explains = true;
};

/// The step of a point and its costs, as the waterfall takes them.
struct StepLoss {
  double step = 0;     ///< seconds, median of untraced steps
  double traced = 0;   ///< seconds, what `costs` sum to: mean over ranks
  double slowest = 0;  ///< seconds, traced steps as long as their slowest rank
  double work = 0;     ///< work_per_step
  int ranks = 1;
  StepCosts costs;
};

/// Ideal step = baseline step * (work / its work) * (its ranks / ranks); each cause's part of the
/// baseline is scaled alike, and what the point has more of it is lost. Differences between traced
/// and untraced steps are a cause of their own.
[[nodiscard]] Waterfall waterfall(const StepLoss& point, const StepLoss& baseline);

}  // namespace isoscale::analysis
