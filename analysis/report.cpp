// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "base/parallel.hpp"
#include "calibration/fit_calibration.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;

bool recomputes(const PointData& point) {
  const std::string recompute = option_of(point, "recompute");
  return !recompute.empty() && recompute != "none";
}

double recomputed_flop(const program::Outline& step) {
  double forward = 0, backward = 0;
  for (const program::OutlineOp& op : step.ops) {
    if (op.place.phase == program::Phase::forward) forward += op.flop;
    if (op.place.phase == program::Phase::backward) backward += op.flop;
  }
  return std::max(0.0, backward - 2 * forward);
}

std::optional<double> flop_per_step(const PointData& point) {
  if (point.flop_of_rank.empty()) return std::nullopt;
  const double flop = std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
  return std::isfinite(flop) ? std::optional{flop} : std::nullopt;
}

/// The share of a step that the breakdown may leave unexplained: 1%, or 3% on the device `host`
/// (docs/numbers.md).
double closure_limit(const results::RunData& run) { return run.device == "host" ? 0.03 : 0.01; }

bool may_have_rates(const PointData& point, const ReportOptions& options) {
  if (point.verified == false) return options.rates_of_wrong;
  return point.status == results::PointStatus::ok;
}

void add_memory(PointReport& report, const PointData& point) {
  if (point.memory_of_rank.empty()) return;
  report.memory_per_rank = std::ranges::max(point.memory_of_rank);
  if (point.host_memory_of_rank.size() != point.memory_of_rank.size()) return;
  report.host_memory_per_rank = std::ranges::max(point.host_memory_of_rank);
  double device = 0;
  for (std::size_t rank = 0; rank < point.memory_of_rank.size(); ++rank) {
    device = std::max(device, point.memory_of_rank[rank] - point.host_memory_of_rank[rank]);
  }
  report.device_memory_per_rank = device;
}

void add_rates(PointReport& report, const PointData& point, const ReportOptions& options) {
  const bool ok = may_have_rates(point, options);
  if (!ok || !report.step_time || !(report.step_time->median > 0)) return;
  const double time = report.step_time->median;
  if (point.work_per_step > 0 && std::isfinite(point.work_per_step)) {
    report.throughput = point.work_per_step / time;
    // Run files store the batch and the sequence length as integers, and count_in() reads them.
    if (const auto samples = results::count_in(point.options, "batch")) {
      report.samples_per_second = *samples / time;
      const auto sequence = results::count_in(point.model_shape, "sequence");
      if (sequence) report.work_growth = point.work_per_step / (*samples * *sequence);
    }
  }
  if (report.flop_per_step && point.ranks > 0) {
    report.flops_per_rank = *report.flop_per_step / point.ranks / time;
  }
}

void add_breakdown(PointReport& report, const results::RunData& run,
                   const results::CalibrationData& calibration) {
  const PointData& point = *report.data;
  report.breakdown.missing = breakdown::missing_traces(point);
  if (!report.breakdown.missing.empty()) {
    // Slow ranks are found without traces, from the sums of op times.
    report.causes.named = efficiency::named_causes(run, point, {}, report.breakdown);
    return;
  }
  const breakdown::TracedSteps traced = breakdown::traced_steps(point);
  report.link_shares = breakdown::link_shares(run, point, traced, calibration);
  report.breakdown = breakdown::breakdown(point, traced);
  report.pipeline = breakdown::pipeline_report(point, traced);
  if (!report.breakdown.mean) return;
  report.causes = {.pop = efficiency::pop(point, report.breakdown, std::nullopt),
                   .costs = efficiency::step_costs(point, report.breakdown),
                   .named = efficiency::named_causes(run, point, traced, report.breakdown)};
  const breakdown::Breakdown& parts = *report.breakdown.mean;
  report.traced_step = parts.step;
  report.op_time = breakdown::op_times(point);
  report.communication_ratio =
      (parts.transfer + parts.wait + parts.hidden_communication) / parts.step;
  if (report.breakdown.unaccounted > closure_limit(run)) {
    report.labels.emplace_back("not-closed");
  }
}

/// Adds the step time, its number of steps, and the label few-steps if there are too few.
void add_step_time(PointReport& report, const std::optional<statistics::Estimate>& time) {
  report.step_time = time;
  report.steps = report.step_time ? report.step_time->samples : 0;
  if (report.step_time && report.steps < results::fewest_steps)
    report.labels.emplace_back(results::few_steps);
}

PointReport report_point(const results::RunData& run, const PointData& point,
                         const results::CalibrationData& calibration,
                         const ReportOptions& options) {
  PointReport report;
  report.data = &point;
  report.throughput_unit = point.throughput_unit;
  report.labels = point.labels;
  report.nodes = node_use(run, point);
  if (microbench::is_bench(point)) {
    report.bench = microbench::report_bench(run, point, calibration);
    return report;
  }
  report.devices = devices::device_state(run, point);
  add_step_time(report, results::step_time(point));
  report.flags = statistics::sample_flags(untraced_times(point));
  report.flop_per_step = flop_per_step(point);
  add_memory(report, point);
  add_rates(report, point, options);
  if (const auto of_model = model_flop_per_step(point); of_model && report.flops_per_rank) {
    const double executed = report.flop_per_step.value_or(0);
    const double useful = *report.flops_per_rank * (executed > 0 ? *of_model / executed : 1);
    const auto* const ceiling = calibration::ceiling_of(calibration, point.dtype);
    if (ceiling != nullptr && ceiling->rate > 0) report.mfu = useful / ceiling->rate;
    const auto* const sheet = microbench::common_datasheet(run.rank_facts, point, {});
    const auto peak = sheet == nullptr ? std::nullopt : sheet->peak(point.dtype);
    if (peak) report.mfu_of_peak = useful / *peak;
  }
  add_breakdown(report, run, calibration);
  // If neither the step time nor the overhead has an interval, the overhead may be mere noise, so
  // it is left out.
  const auto overhead = instrumentation_overhead(step_blocks(point));
  const bool enough = report.step_time && report.step_time->lower;
  if (enough || (overhead && overhead->lower)) report.instrumentation_overhead = overhead;
  return report;
}

/// The most pairs of a traced and an untraced block that are used, evenly spread: the cost of the
/// Hodges-Lehmann estimate, which averages every two values, grows with the square of their number.
constexpr std::size_t most_pairs = 256;
/// The largest relative overhead of tracing for which there is no warning.
constexpr double tolerated_overhead = 0.01;

/// Returns traced / untraced - 1 for two blocks of steps, of which one is traced; each block's time
/// is its median. Absent if a time is missing or the untraced one is 0.
std::optional<double> difference(const results::StepBlock& one, const results::StepBlock& other) {
  const bool first = one.kind == results::StepBlock::Kind::traced;
  const auto traced = statistics::median(first ? one.times : other.times);
  const auto untraced = statistics::median(first ? other.times : one.times);
  if (!traced || !untraced || !(*untraced > 0)) return std::nullopt;
  return *traced / *untraced - 1;
}

}  // namespace

std::string throughput_unit(std::string_view unit, std::span<const double> growths) {
  const bool is_scaled = !unit.empty() && std::ranges::any_of(growths, [](double growth) {
    return std::abs(growth - 1) > 1e-9;
  });
  return fmt::format("{}{}", is_scaled ? "scaled " : "", unit);
}

std::optional<double> model_flop_per_step(const PointData& point) {
  std::optional<double> flop = flop_per_step(point);
  if (!flop || !recomputes(point)) return flop;
  const program::OutlineSet& set = point.outline;
  if (set.outlines.empty() || set.outline_of_rank.size() != point.flop_of_rank.size()) {
    return std::nullopt;
  }
  std::vector<double> recomputed;
  for (const program::Outline& step : set.outlines) recomputed.push_back(recomputed_flop(step));
  for (const std::uint32_t outline : set.outline_of_rank) {
    if (outline >= recomputed.size()) return std::nullopt;
    *flop -= recomputed[outline];
  }
  return *flop > 0 ? flop : std::nullopt;
}

RunReport make_report(const results::RunData& run, std::string file, const ReportOptions& options) {
  RunReport report{.data = &run, .file = std::move(file)};
  report.calibration = calibration::calibration_of(run);
  std::vector<PointReport> reports(run.points.size());
  base::parallel_for(reports.size(), [&](std::size_t i) {
    reports[i] = report_point(run, run.points[i], report.calibration, options);
  });
  std::vector<PointReport> points;
  for (PointReport& of_point : reports) {
    (of_point.bench ? report.benches : points).push_back(std::move(of_point));
  }
  std::ranges::stable_sort(report.benches, {},
                           [](const PointReport& at) { return at.data->index; });
  report.curves = make_curves(std::move(points), options);
  return report;
}

RunReport summarise(const results::RunSummary& summary, std::string file,
                    const ReportOptions& options) {
  RunReport report{.data = &summary.run, .file = std::move(file)};
  std::vector<PointReport> points;
  for (std::size_t i = 0; i < summary.figures.size(); ++i) {
    const PointData& point = summary.run.points[i];
    const results::PointFigures& figures = summary.figures[i];
    const bool bench = microbench::is_bench(point.workload, figures.steps, figures.rows);
    PointReport& at = (bench ? report.benches : points).emplace_back();
    at.data = &point;
    at.throughput_unit = point.throughput_unit;
    at.labels = point.labels;
    if (bench || !figures.step_time) continue;
    const double time = *figures.step_time;
    add_step_time(
        at, statistics::Estimate{
                .median = time, .minimum = time, .maximum = time, .samples = figures.counted});
    add_rates(at, point, options);
  }
  report.curves = make_curves(std::move(points), options);
  return report;
}

std::optional<statistics::Located> instrumentation_overhead(
    std::span<const results::StepBlock> blocks) {
  std::vector<double> pairs;
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (blocks[i].kind == blocks[i + 1].kind) continue;
    if (const auto pair = difference(blocks[i], blocks[i + 1])) pairs.push_back(*pair);
    ++i;  // each block belongs to one pair only, so the next pair begins after this one
  }
  if (pairs.size() > most_pairs) {
    for (std::size_t i = 0; i < most_pairs; ++i) pairs[i] = pairs[i * pairs.size() / most_pairs];
    pairs.resize(most_pairs);
  }
  return statistics::centre(pairs);
}

std::string overhead_warning(const std::optional<statistics::Located>& overhead) {
  if (!overhead) return "";
  if (overhead->lower && overhead->upper) {
    if (!(*overhead->lower > tolerated_overhead)) return "";
    return fmt::format(
        "tracing makes steps {} longer ({} to {}), so the breakdown is of disturbed steps",
        units::format_percent(overhead->value), units::format_percent(*overhead->lower),
        units::format_percent(*overhead->upper));
  }
  if (!(overhead->value > tolerated_overhead)) return "";
  return fmt::format(
      "tracing seems to make steps {} longer, but there are too few blocks to be sure",
      units::format_percent(overhead->value));
}

}  // namespace isoscale::analysis
