// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/link_shares.hpp"
#include "analysis/breakdown/op_times.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "analysis/devices/device_state.hpp"
#include "analysis/efficiency/causes.hpp"
#include "analysis/efficiency/scaling_laws.hpp"
#include "analysis/microbench/bench.hpp"
#include "results/reader/summary.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/point_facts.hpp"
#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"

/// Turns run files into reports with pure functions. The renderers only print the result.
namespace isoscale::analysis {

/// One point with everything derived from it. An empty optional means undefined or not measured.
struct PointReport {
  const results::PointData* data = nullptr;       ///< not owned; lives as long as the runs given
  std::optional<statistics::Estimate> step_time;  ///< seconds, of the slowest rank; untraced steps
  std::optional<double> throughput;               ///< work_per_step / median step time
  /// Samples of the global batch over the median step time; absent for workloads without a batch.
  std::optional<double> samples_per_second;
  /// The work_per_step per token of the batch. Weak scaling raises it by growing the model; it is 1
  /// where the model does not grow.
  double work_growth = 1;
  std::optional<results::NodeUse> nodes;      ///< absent where the nodes of the ranks are not known
  std::optional<double> speedup, efficiency;  ///< against the curve's baseline (see make_report)
  /// The 95% interval, from the intervals of both step times; absent if one of these is, and at the
  /// baseline.
  std::optional<statistics::Located> speedup_interval;
  std::optional<double> flop_per_step;   ///< over all ranks
  std::optional<double> flops_per_rank;  ///< FLOP/s per rank, mean
  /// MFU: flops_per_rank without the recomputed FLOP, over the best rate that a multiplication of
  /// this element type reached in the same run; absent where none was measured.
  std::optional<double> mfu;
  std::optional<double> memory_per_rank;  ///< bytes, largest rank
  /// The parts of memory_per_rank in the device's and in the host's memory, each on the rank with
  /// the most; absent where the file does not tell them apart.
  std::optional<double> device_memory_per_rank, host_memory_per_rank;
  std::optional<double> traced_step;  ///< seconds, the sum of the breakdown
  breakdown::BreakdownResult breakdown;
  std::optional<breakdown::PipelineReport>
      pipeline;                               ///< with traces, for points with pipeline stages
  std::map<std::string, double> op_time;      ///< seconds by kind of op, see op_times
  std::optional<double> communication_ratio;  ///< (transfer + wait + hidden) / step
  std::optional<statistics::Located>
      instrumentation_overhead;   ///< traced / untraced - 1, see tracing_overhead.hpp
  statistics::SampleFlags flags;  ///< of the untraced steps
  std::vector<breakdown::LinkShare>
      link_shares;               ///< against the same collectives alone; with traces
  devices::DeviceState devices;  ///< during the loop; empty where nothing was sampled
  std::optional<microbench::BenchReport> bench;  ///< of a micro-benchmark; it has no step times
  efficiency::Causes causes;                     ///< why the point is not faster
  std::vector<std::string> labels;               ///< of the data, plus few-steps, not-closed
  std::size_t steps = 0;  ///< steps that count for the step time, over all launches
  /// For a point over several launches: the number (from 1) of the launch that its breakdown and
  /// causes come from. 0 for a point of one launch.
  std::size_t launch = 0;
};

/// Points of one workload, model, dtype, scaling, options and placement over rank counts,
/// ascending. Options that scaling itself changes may differ.
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
  std::vector<PointReport> benches{};      ///< points of micro-benchmarks, by index
  results::CalibrationData calibration{};  ///< as stored; where none is, fitted to the run's rows
};

struct ReportOptions {
  /// Says whether points that fail verification have rates too, for reports that show them marked.
  enum class OfWrong : std::uint8_t { nothing, rates };
  OfWrong of_wrong = OfWrong::nothing;
  std::optional<int> baseline{};  ///< rank count; absent = as baseline_ranks chooses
  /// Alternatively the baseline is the first point that fills one whole node, with all ranks that
  /// its launch has there.
  bool whole_node = false;
};

/// Makes a report of a run. Efficiency of N ranks against N0, the baseline, is throughput(N) /
/// throughput(N0) * N0 / N. Speed-up is throughput(N) / throughput(N0) * N0, so the baseline counts
/// as ideal; against a whole node it is throughput(N) / throughput(N0). Only points that are ok and
/// not known to be wrong have a throughput. `run` outlives the report.
[[nodiscard]] RunReport make_report(const results::RunData& run, std::string file,
                                    const ReportOptions& options);

/// Makes a report with only what a summary allows: points have the median of their step times,
/// throughput, speed-up and efficiency against their baseline, and labels. Micro-benchmarks have
/// only their data. A whole node cannot be the baseline, since a summary does not have the ranks'
/// nodes. `summary` outlives the report.
[[nodiscard]] RunReport summarise(const results::RunSummary& summary, std::string file,
                                  const ReportOptions& options);

/// Returns the FLOP of one step over all ranks that the model requires, without those that
/// `recompute` makes the backward pass repeat (Korthikanti et al., arXiv 2205.05198, section 6.3:
/// MFU counts these, HFU all). The backward pass has two products for each one of the forward pass;
/// the rest is recomputed. Absent when the file does not say what a step does.
[[nodiscard]] std::optional<double> model_flop_per_step(const results::PointData& point);

}  // namespace isoscale::analysis
