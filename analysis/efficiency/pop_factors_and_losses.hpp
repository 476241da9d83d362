// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "mesh/mesh.hpp"
#include "results/records/run_data.hpp"

/// Explains the lost efficiency of a point by POP factors, and by the time lost to each cause.
namespace isoscale::analysis::efficiency {

/// The efficiencies of the POP Centre of Excellence (co-design.pop-coe.eu/metrics), with the
/// formulas in docs/breakdown.md. The useful time of a rank is its compute and copy time in traced
/// steps; on a free network, transfers take no time.
struct Pop {
  double load_balance = 1, communication = 1, parallel = 1;
  /// Absent if the step on a free network could not be simulated.
  std::optional<double> serialisation, transfer;
  /// These compare the point with the baseline. The last two are absent if FLOP are not known.
  std::optional<double> computation_scalability, work_scalability, speed_scalability;
  std::optional<double> global;
};

/// The data of a point from which its computation scalability is computed.
struct UsefulWork {
  double useful = 0;  ///< seconds over all ranks
  double work = 0;    ///< PointData::work_per_step
  double flop = 0;    ///< over all ranks; 0 = not known
};
[[nodiscard]] std::optional<UsefulWork> useful_work(const results::PointData& point,
                                                    const breakdown::BreakdownResult& breakdown);

/// Returns the POP factors of a point. If some rank has no traces, the useful times of all ranks
/// come from PointData::op_sums. Absent without traces, and if the useful time of some rank is not
/// known or that of all is 0. Without `baseline` the scalabilities and `global` are absent.
[[nodiscard]] std::optional<Pop> pop(const results::PointData& point,
                                     const breakdown::BreakdownResult& breakdown,
                                     const std::optional<UsefulWork>& baseline);

/// The costs of a traced step by cause, in seconds, mean over ranks. These sum to the breakdown's
/// step: gemm, other_compute, copies, transfer (or communication, if it is set), bubble, waiting,
/// gap and other. The other members are parts of these. The time of an op is its median over steps
/// on the typical rank with the program: the median rank, or the faster of two. The time by which
/// other ranks exceed this is imbalance, and the time by which the means of ops exceed their
/// medians is noise.
struct StepCosts {
  double gemm = 0;  ///< GEMMs on typical ranks in traced steps
  /// The GEMM time without communication, and the time that overlap with communication adds to it.
  /// If communication was hidden, they come from steps that were run without communication, and are
  /// absent unless all traced ranks have times of such steps.
  std::optional<double> gemm_alone{}, gemm_overlap{};
  double other_compute = 0, copies = 0;
  std::map<mesh::AxisSet, double> transfer{};  ///< exposed transfers
  /// The sum of transfer, wait and bubble, if they are not known separately.
  std::optional<double> communication{};
  double bubble = 0;                           ///< only the bubble caused by the schedule, if known
  std::optional<double> imbalance{}, noise{};  ///< absent if the cause of waiting is not known
  double waiting = 0;                          ///< imbalance and noise together
  double uneven = 0;   ///< imbalance of compute times, and the bubble that it causes
  double hiccups = 0;  ///< noise of compute times; a part of `noise`
  double gap = 0, other = 0;
};

/// Returns the costs of a point's traced step; absent without a breakdown.
[[nodiscard]] std::optional<StepCosts> step_costs(const results::PointData& point,
                                                  const breakdown::BreakdownResult& breakdown);

/// The time that one cause adds to a step, compared with ideal scaling from the baseline.
struct LostTime {
  std::string cause;   ///< "GEMMs", "dp transfer", ...
  double seconds = 0;  ///< negative if this cause takes less time than in the scaled baseline
};

/// The losses by which the measured step exceeds the ideal one: apart from rounding, ideal + the
/// sum of all lost = measured.
struct Waterfall {
  double ideal = 0;                    ///< seconds: the baseline's step, scaled by work and ranks
  double measured = 0;                 ///< seconds
  std::vector<LostTime> lost{};        ///< always in the same order; may contain zeros
  std::vector<std::string> missing{};  ///< one sentence for each pair of causes not separated
  /// False if the causes do not explain the loss: traced steps, from which causes come, and
  /// untraced ones, from which the loss comes, differ by more than a tenth of the measured step, or
  /// there are too few steps for an interval. Reports then give no shares.
  bool explains = true;
};

/// The step of a point and its costs, the input of waterfall().
struct StepLoss {
  double step = 0;     ///< seconds, median of untraced steps
  double traced = 0;   ///< seconds, mean over ranks of the traced steps; the sum of `costs`
  double slowest = 0;  ///< seconds, slowest rank of each traced step; mean over steps
  double work = 0;     ///< PointData::work_per_step
  int ranks = 1;
  StepCosts costs{};
};

/// Divides the loss of a point by cause (docs/breakdown.md). Ideal step = baseline step * (work /
/// baseline's work) * (baseline's ranks / ranks). The time lost to a cause is the point's cost
/// minus that of the baseline, scaled by the same factor. "uneven steps" and "untraced" come last.
[[nodiscard]] Waterfall waterfall(const StepLoss& point, const StepLoss& baseline);

}  // namespace isoscale::analysis::efficiency
