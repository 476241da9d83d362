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
#include "analysis/breakdown/op_times.hpp"
#include "analysis/devices/device_state.hpp"
#include "analysis/efficiency/causes.hpp"
#include "analysis/microbench/bench.hpp"
#include "analysis/step_samples.hpp"
#include "results/calibration_data.hpp"
#include "results/point_facts.hpp"
#include "results/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"

/// From run files to what a report says; a pure function. The renderers only print it.
namespace isoscale::analysis {

/// One point with everything derived from it. Optional = undefined or not measured.
struct PointReport {
  const results::PointData* data = nullptr;       ///< not owned; lives as long as the runs given
  std::optional<statistics::Estimate> step_time;  ///< seconds, of the slowest rank; untraced steps
  std::optional<double> throughput;               ///< work_per_step / median step time
  /// Samples of the global batch over the median step time; absent for workloads without a batch.
  std::optional<double> samples_per_second;
  /// Weak scaling grows the model: work_per_step over the tokens of the batch, 1 where it does not.
  double work_growth = 1;
  std::optional<results::NodeUse> nodes;      ///< absent where it is not known who is where
  std::optional<double> speedup, efficiency;  ///< against the curve's baseline (see make_report)
  std::optional<statistics::Located> speedup_interval;  ///< 95%, from both step times; absent
                                                        ///< without theirs and at the baseline
  std::optional<double> flop_per_step;   ///< over all ranks
  std::optional<double> flops_per_rank;  ///< FLOP/s per rank, mean
  /// flops_per_rank, less what recompute added, over the best that a multiplication of this element
  /// type reached in the same run; absent where none was measured.
  std::optional<double> mfu;
  std::optional<double> memory_per_rank;  ///< bytes, largest rank
  /// The parts of it in the device's and in the host's memory, each on the rank that has most;
  /// absent where the file does not tell them apart.
  std::optional<double> device_memory_per_rank, host_memory_per_rank;
  std::optional<double> traced_step;  ///< seconds, what the breakdown sums to
  BreakdownResult breakdown;
  std::optional<PipelineReport> pipeline;     ///< with traces, of points with stages
  std::map<std::string, double> op_time;      ///< seconds by kind of op, see op_times
  std::optional<double> communication_ratio;  ///< (transfer + wait + hidden) / step
  std::optional<statistics::Located>
      instrumentation_overhead;        ///< traced / untraced - 1, see step_samples.hpp
  statistics::SampleFlags flags;       ///< of the untraced steps
  std::vector<LinkShare> link_shares;  ///< against the same collectives alone; with traces
  DeviceState devices;                 ///< beside the loop; empty where nothing was sampled
  std::optional<BenchReport> bench;    ///< of a micro-benchmark; it has nothing of steps
  Causes causes;                       ///< why it is not faster
  std::vector<std::string> labels;     ///< of the data, plus few-steps, not-closed
  std::size_t steps = 0;               ///< that count for the step time, over its launches
  /// The launch of a point over several: the one, from 1, that its breakdown and causes are of; 0
  /// of one launch's own.
  std::size_t launch = 0;
};

/// Points of one workload, model, dtype, scaling, options and placement over rank counts,
/// ascending. Options that scaling itself changes may differ.
struct Curve {
  std::string title;  ///< "dp, tiny, f32, strong scaling, packed"
  std::vector<PointReport> points;
  std::optional<int> baseline;  ///< rank count that efficiency is against
  bool per_node = false;        ///< it is one whole node, and speed-up counts nodes, not ranks
  Laws laws;
};

struct RunReport {
  const results::RunData* data = nullptr;
  std::string file{};
  std::vector<Curve> curves{};
  std::vector<PointReport> benches{};      ///< points of micro-benchmarks, by index
  results::CalibrationData calibration{};  ///< as stored, or fitted to the rows of a run without
};

struct ReportOptions {
  /// Says whether points that do not verify have rates too: for who shows them marked.
  enum class OfWrong : std::uint8_t { nothing, rates };
  OfWrong of_wrong = OfWrong::nothing;
  std::optional<int> baseline{};  ///< rank count; absent = as baseline_ranks chooses
  /// Or the first point that fills one whole node: it has all ranks that its launch has there.
  bool whole_node = false;
};

/// Efficiency of N ranks against N0, the baseline, is throughput(N) / throughput(N0) * N0 / N;
/// speed-up is throughput(N) / throughput(N0) * N0, so the baseline counts as ideal; against a
/// whole node it is throughput(N) / throughput(N0). Only points that are ok and not known to be
/// wrong have a throughput. `run` outlives the report.
[[nodiscard]] RunReport make_report(const results::RunData& run, std::string file,
                                    const ReportOptions& options);

/// The same of a run that was read as a summary, without what rests on more than that: points have
/// step times, throughput, what they are against their baseline, and labels. Of micro-benchmarks
/// only their data are there. A whole node cannot be the baseline: who is where is not known.
[[nodiscard]] RunReport summarise(const results::RunData& run, std::string file,
                                  const ReportOptions& options, Confidences& confidences);

/// FLOP of one step over all ranks that the model asks for: without what `recompute` made backward
/// compute again (Korthikanti et al., arXiv 2205.05198, section 6.3: MFU counts these, HFU all).
/// Backward has two products for each of forward's; the rest is recomputed. Absent when the file
/// does not say what a step does.
[[nodiscard]] std::optional<double> model_flop_per_step(const results::PointData& point);

}  // namespace isoscale::analysis
