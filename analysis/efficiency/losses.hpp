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

/// Explains the lost efficiency of a point: POP factors, and the waterfall of lost time by cause.
namespace isoscale::analysis::efficiency {

/// The efficiencies of the POP Centre of Excellence (co-design.pop-coe.eu/metrics); each is the
/// product of the two below it. The useful time of a rank is that of compute and copies in its
/// traced steps.
///   global = parallel * computation scalability (= work * speed)
///   parallel = load balance (mean / largest useful time) * communication
///   communication (largest useful / step) = serialisation (largest useful / step on a network that
///     takes no time) * transfer (that step / measured step; gaps are part of it)
struct Pop {
  double load_balance = 1, communication = 1, parallel = 1;
  std::optional<double> serialisation, transfer;  ///< absent without a replay
  /// Relative to the baseline, per unit of work: useful time; FLOP; FLOP per useful second.
  std::optional<double> computation_scalability, work_scalability, speed_scalability;
  std::optional<double> global;
};

/// The work of a point, from which its computation scalability follows.
struct UsefulWork {
  double useful = 0;  ///< seconds over all ranks
  double work = 0;    ///< work_per_step
  double flop = 0;    ///< over all ranks; 0 = not known
};
[[nodiscard]] std::optional<UsefulWork> useful_work(const results::PointData& point,
                                                    const breakdown::BreakdownResult& breakdown);

/// Returns the POP factors of a point. The useful time of ranks without traces comes from the op
/// sums. Absent without traces, without useful time, and if the useful time of some rank is not
/// known. Without `baseline` there are no factors of scalability and no global efficiency.
[[nodiscard]] std::optional<Pop> pop(const results::PointData& point,
                                     const breakdown::BreakdownResult& breakdown,
                                     const std::optional<UsefulWork>& baseline);

/// The costs of a traced step by cause; seconds, mean over ranks. The parts sum to the breakdown's
/// step. The time of an op is its median over steps; what its mean exceeds the median by is noise.
/// Among ranks that play the same program the median rank is typical (of two ranks the faster one);
/// the excess of the others is imbalance.
struct StepCosts {
  double gemm = 0;  ///< as traced, on typical ranks
  /// The GEMMs played without communication, and the time that overlap with communication adds to
  /// them. Where no communication was hidden nothing overlapped, so that `gemm_alone` is all of the
  /// GEMM time; otherwise absent without solo times.
  std::optional<double> gemm_alone{}, gemm_overlap{};
  double other_compute = 0, copies = 0;
  std::map<mesh::AxisSet, double> transfer;  ///< exposed transfers
  /// Transfer, wait and bubble together; absent where they are known separately.
  std::optional<double> communication{};
  double bubble = 0;                       ///< the schedule's own bubble, where that is known
  std::optional<double> imbalance, noise;  ///< absent where waiting could not be divided
  double waiting = 0;                      ///< imbalance and noise together
  double uneven = 0;   ///< the imbalance that is known without dividing any waiting
  double hiccups = 0;  ///< the noise that is known without dividing any waiting
  double gap = 0, other = 0;
};

/// Returns the costs of a point's traced step; absent without a breakdown.
[[nodiscard]] std::optional<StepCosts> step_costs(const results::PointData& point,
                                                  const breakdown::BreakdownResult& breakdown);

/// The time that one cause added to a step, compared with ideal scaling from the baseline.
struct LostTime {
  std::string cause;   ///< "GEMMs", "dp transfer", ...
  double seconds = 0;  ///< below 0 where the point has less of it than the scaled baseline
};

/// The losses between the ideal step and the measured one: ideal + the sum of all lost = measured,
/// but for rounding.
struct Waterfall {
  double ideal = 0;                  ///< seconds: the baseline's step, scaled by work and ranks
  double measured = 0;               ///< seconds
  std::vector<LostTime> lost;        ///< always in the same order, including zeros
  std::vector<std::string> missing;  ///< what could not be separated, one sentence each
  /// False if the causes do not explain the loss: the untraced steps, in which the loss was
  /// measured, differ from the traced ones by more than a tenth of the measured step, or there are
  /// too few steps for an interval. Reports then give no shares of causes.
  bool explains = true;
};

/// The step of a point and its costs, in the form that the waterfall takes.
struct StepLoss {
  double step = 0;     ///< seconds, median of untraced steps
  double traced = 0;   ///< seconds, the sum of `costs`: mean over ranks
  double slowest = 0;  ///< seconds, slowest rank; mean over the traced steps
  double work = 0;     ///< work_per_step
  int ranks = 1;
  StepCosts costs;
};

/// Divides the loss of a point by cause. Ideal step = baseline step * (work / baseline's work) *
/// (baseline's ranks / ranks). Each cause's part of the baseline is scaled by the same factor, and
/// the excess of the point over it is lost. The difference between traced and untraced steps is a
/// separate cause.
[[nodiscard]] Waterfall waterfall(const StepLoss& point, const StepLoss& baseline);

}  // namespace isoscale::analysis::efficiency
