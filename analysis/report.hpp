// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis/devices/device_state_and_energy.hpp"
#include "analysis/efficiency/scaling_laws.hpp"
#include "analysis/efficiency/slow_ranks_and_links.hpp"
#include "analysis/microbench/microbench_report.hpp"
#include "results/reader/appended_summary.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/measured_step_time.hpp"
#include "results/records/point_facts.hpp"
#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"
#include "statistics/sample_flags.hpp"

/// Turns run files into reports, which renderers print, with pure functions.
namespace isoscale::analysis {

/// One point with everything derived from it. A value is absent if undefined or not measured.
struct PointReport {
  const results::PointData* data = nullptr;       ///< not owned: an element of the run's `points`
  std::optional<statistics::Estimate> step_time;  ///< seconds; untraced steps, slowest rank of each
  std::optional<double> throughput;               ///< work_per_step / median step time
  std::string throughput_unit;                    ///< throughput_unit() of the point's curve
  /// Samples of the global batch per second; absent for workloads without a batch.
  std::optional<double> samples_per_second;
  /// work_per_step / tokens of the batch: above 1 where weak scaling enlarges the model, else 1.
  double work_growth = 1;
  std::optional<results::NodeUse> nodes;      ///< absent if the ranks' nodes are not known
  std::optional<double> speedup, efficiency;  ///< relative to the baseline (see make_report)
  /// The speed-up with its 95% interval, which combines those of the point's and of the baseline's
  /// step time. Absent for the baseline, or if one of these two intervals is absent.
  std::optional<statistics::Located> speedup_interval;
  std::optional<double> flop_per_step;   ///< over all ranks
  std::optional<double> flops_per_rank;  ///< FLOP/s per rank, mean
  /// MFU: flops_per_rank without recomputed FLOP / the best rate of a GEMM of this element type in
  /// the same run; absent if none was measured.
  std::optional<double> mfu;
  /// The same FLOP/s / the peak in the datasheet of the point's GPUs; absent if it is not known.
  std::optional<double> mfu_of_peak;
  std::optional<double> memory_per_rank;  ///< bytes, the most of any rank
  /// Bytes in device and in host memory, the most of any rank; absent if only their sum is stored.
  std::optional<double> device_memory_per_rank, host_memory_per_rank;
  std::optional<double> traced_step;  ///< seconds that the parts of `breakdown` add up to
  breakdown::BreakdownResult breakdown;
  std::optional<breakdown::PipelineReport> pipeline;  ///< only for traced points with stages
  std::map<std::string, double> op_time;              ///< seconds by kind of op; see op_times()
  std::optional<double> communication_ratio;          ///< (transfer + wait + hidden) / step
  std::optional<statistics::Located> instrumentation_overhead;  ///< traced / untraced time - 1
  statistics::SampleFlags flags;                  ///< warnings about the untraced step times
  std::vector<breakdown::LinkShare> link_shares;  ///< transfer times compared with the calibration
  devices::DeviceState devices;                  ///< during the measured loop; empty if not sampled
  std::optional<microbench::BenchReport> bench;  ///< only for micro-benchmarks (no step times)
  efficiency::Causes causes;                     ///< why the point is not faster
  /// The stored labels of the point, and two that the analysis adds: "few-steps" if there are too
  /// few steps for an interval, "not-closed" if the breakdown leaves too much time unexplained.
  std::vector<std::string> labels;
  std::size_t steps = 0;  ///< number of steps that `step_time` is from, over all launches
  /// The number (from 1) of the launch that breakdown and causes are from; 0 if not joined.
  std::size_t launch = 0;
};

/// The points of one experiment (experiment_and_machine_identity.hpp), in ascending order of ranks.
struct Curve {
  std::string title;  ///< "dp, tiny, f32, strong scaling, packed"
  std::vector<PointReport> points;
  std::optional<int> baseline;  ///< rank count that efficiency is relative to
  bool per_node = false;  ///< the baseline is one whole node; speed-up counts nodes, not ranks
  efficiency::Laws laws;
};

struct RunReport {
  const results::RunData* data = nullptr;
  std::string file{};
  std::vector<Curve> curves{};
  std::vector<PointReport> benches{};  ///< micro-benchmarks, by index of their points
  /// Stored in the file, else fitted to the run's measurements.
  results::CalibrationData calibration{};
};

/// Returns the unit of the throughput of points of one curve: `unit`, such as "tokens/s", or
/// "scaled tokens/s" if one of the points' `growths` (PointReport::work_growth) is not 1.
[[nodiscard]] std::string throughput_unit(std::string_view unit, std::span<const double> growths);

struct ReportOptions {
  std::optional<int> baseline{};  ///< rank count; absent: baseline_ranks() chooses it
  /// If true, the baseline must be a point on one node, with all ranks that the launch has there.
  bool whole_node = false;
  /// True if points with wrong results get throughput too; reports mark them.
  bool rates_of_wrong = false;
};

/// Makes a report of a run, which must outlive it. Relative to the N0 ranks of the baseline, N
/// ranks have the speed-up throughput(N) / throughput(N0) * N0, without the factor N0 if the
/// baseline is a whole node, and the efficiency throughput(N) / throughput(N0) * N0 / N. Points
/// that failed have no throughput; those known to be wrong have one only with the option
/// rates_of_wrong.
[[nodiscard]] RunReport make_report(const results::RunData& run, std::string file,
                                    const ReportOptions& options);

/// Makes a report from the summary of a run, which must outlive it. Its points have the median of
/// their step times, throughput, speed-up and efficiency, and labels; micro-benchmarks have only
/// their data and labels. A whole node cannot be the baseline, since a summary lacks the nodes.
[[nodiscard]] RunReport summarise(const results::RunSummary& summary, std::string file,
                                  const ReportOptions& options);

/// Returns the FLOP, over all ranks, that the model requires for one step. MFU counts only these,
/// and not those that activation recomputation repeats in the backward pass (Korthikanti et al.,
/// arXiv 2205.05198, section 6.3): for each matrix product of the forward pass, the backward pass
/// needs two, and all further ones are recomputed. Absent if the file does not have the FLOP of
/// each rank, or if the workload recomputes and the file does not list the ops of a step.
[[nodiscard]] std::optional<double> model_flop_per_step(const results::PointData& point);

/// Returns the share by which tracing makes steps longer: the Hodges-Lehmann estimate of traced /
/// untraced - 1 over pairs of neighbouring blocks of steps, one traced and one untraced, by their
/// medians. There is an interval from 6 pairs on. Absent if there is no pair.
[[nodiscard]] std::optional<statistics::Located> instrumentation_overhead(
    std::span<const results::StepBlock> blocks);

/// Returns a warning if the lower bound of the overhead, or its value if it has no interval, is
/// above 1%; "" otherwise.
[[nodiscard]] std::string overhead_warning(const std::optional<statistics::Located>& overhead);

}  // namespace isoscale::analysis
