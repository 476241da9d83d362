// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_and_link_times.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/fit_calibration.hpp"
#include "program/op.hpp"
#include "program/outline.hpp"
#include "results/records/point_facts.hpp"
#include "units/quantity.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::breakdown {
namespace {

using program::OpKind;
using results::CalibrationCurve;

/// Calls visit(op, span) for each op of the usable traces, and returns the number of these traces.
/// Warm-up and the first step of each block of traced steps are left out.
template <class Visit>
std::size_t for_each_op(const results::PointData& point, Visit&& visit) {
  std::size_t count = 0;
  for (const auto& [rank, traces] : usable_traces(point)) {
    const program::Outline& outline = point.outline.of(rank);
    for (const timeline::StepTrace* const trace : traces) {
      for (const timeline::Span& span : trace->spans) visit(outline.ops.at(span.op), span);
    }
    count += traces.size();
  }
  return count;
}

struct Kind {
  OpKind op = OpKind::all_reduce;
  mesh::AxisSet axes;
  auto operator<=>(const Kind&) const = default;
};

struct Sums {
  double alone = 0, measured = 0;
  bool known = true;
  std::string link_class;
};

bool has_transfer(OpKind op) {
  return program::communicates(op) && op != OpKind::exchange && op != OpKind::barrier;
}

/// Finds the calibration curves of groups, and stores each result so that it is searched for once.
class Curves {
 public:
  Curves(const results::RunData& run, const results::PointData& point,
         const results::CalibrationData& calibration)
      : run_(run), point_(point), calibration_(calibration) {}

  /// Returns the curve of a collective among the group of `rank`; null if there is none, or if the
  /// matching curves are of several link classes. Not owned.
  const CalibrationCurve* find(OpKind op, mesh::AxisSet axes, int rank) {
    const int colour = mesh::group_colour(point_.mesh, rank, axes);
    const auto [place, added] = found_.try_emplace({op, axes, colour}, nullptr);
    if (added) place->second = search(op, mesh::group_members(point_.mesh, rank, axes));
    return place->second;
  }

 private:
  const CalibrationCurve* search(OpKind op, const std::vector<int>& members) const {
    const std::optional<int> nodes = calibration::nodes_of(run_, point_, members);
    const std::string dtype = results::stored_dtype(point_);
    const CalibrationCurve* best = nullptr;
    std::set<std::string> classes;
    for (const CalibrationCurve& at : calibration_.curves) {
      const bool fits = at.op == program::name(op) && at.implementation == "library" &&
                        std::cmp_equal(at.members, members.size()) && at.nodes == nodes;
      if (!fits) continue;
      classes.insert(at.link_class);
      if (best == nullptr || at.dtype == dtype) best = &at;
    }
    return classes.size() == 1 ? best : nullptr;
  }

  const results::RunData& run_;
  const results::PointData& point_;
  const results::CalibrationData& calibration_;
  std::map<std::tuple<OpKind, mesh::AxisSet, int>, const CalibrationCurve*> found_;
};

void add_rank(const results::PointData& point, const TracedStep& step, int rank, Curves& curves,
              std::map<Kind, Sums>& sums) {
  const program::Outline& outline = point.outline.of(rank);
  const auto& spans = step.traces[static_cast<std::size_t>(rank)]->spans;
  const auto& waits = step.waits[static_cast<std::size_t>(rank)];
  std::map<mesh::AxisSet, bool> known;  // true if all members of the rank's group have known waits
  for (std::size_t at = 0; at < outline.ops.size(); ++at) {
    const program::OutlineOp& op = outline.ops[at];
    if (!has_transfer(op.kind) || mesh::group_size(point.mesh, op.axes) < 2) continue;
    Sums& sum = sums[{.op = op.kind, .axes = mesh::varying(point.mesh, op.axes)}];
    sum.measured += units::to_seconds(transfer_time(spans[at], waits[at])).value();
    const CalibrationCurve* const curve = curves.find(op.kind, op.axes, rank);
    const auto alone = curve == nullptr
                           ? std::optional<double>{}
                           : calibration::predict(*curve, static_cast<double>(op.bytes));
    const auto [members, added] = known.try_emplace(op.axes);
    if (added) members->second = all_known(step, mesh::group_members(point.mesh, rank, op.axes));
    sum.known = sum.known && alone && members->second;
    if (!alone) continue;
    sum.alone += *alone;
    sum.link_class = curve->link_class;
  }
}

/// Returns an option that is a count; 0 if it is not a whole number from 1 to the largest int.
int count_of(const results::PointData& point, const std::string& key) {
  const double number = results::count_in(point.options, key).value_or(0);
  return number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : 0;
}

bool receives_from_a_stage(const program::Outline& outline, const program::OutlineOp& op) {
  return program::between_stages(op) &&
         std::ranges::any_of(outline.transfers_of(op),
                             [](const program::OutlineTransfer& transfer) {
                               return transfer.axis == mesh::Axis::pp &&
                                      transfer.direction == program::Direction::receive;
                             });
}

std::optional<HandOverTimes> hand_over_times(const results::PointData& point,
                                             const TracedSteps& traced) {
  std::vector<double> seconds;
  for (const TracedStep& step : traced.steps) {
    for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
      if (step.traces[rank] == nullptr || step.waits[rank].empty()) continue;
      const program::Outline& outline = point.outline.of(static_cast<int>(rank));
      for (const timeline::Span& span : step.traces[rank]->spans) {
        if (!receives_from_a_stage(outline, outline.ops[span.op])) continue;
        const units::Nanoseconds busy = transfer_time(span, step.waits[rank][span.op]);
        seconds.push_back(units::to_seconds(busy).value());
      }
    }
  }
  if (seconds.empty()) return std::nullopt;
  std::ranges::sort(seconds);
  const std::size_t last = seconds.size() - 1;
  return HandOverTimes{.median = (seconds[last / 2] + seconds[(last + 1) / 2]) / 2,
                       .p90 = seconds[last * 9 / 10],
                       .messages = seconds.size()};
}

}  // namespace

std::map<std::string, double> op_times(const results::PointData& point) {
  std::map<OpKind, units::Nanoseconds> total;
  const std::size_t traces =
      for_each_op(point, [&](const program::OutlineOp& op, const timeline::Span& span) {
        total[op.kind] += span.end - span.start;
      });
  std::map<std::string, double> means;
  for (const auto& [kind, time] : total) {
    means[std::string{program::name(kind)}] =
        units::to_seconds(time).value() / static_cast<double>(traces);
  }
  return means;
}

std::vector<GemmTime> gemm_times(const results::PointData& point) {
  std::map<program::GemmShape, GemmTime> of_shape;
  const std::size_t traces =
      for_each_op(point, [&](const program::OutlineOp& op, const timeline::Span& span) {
        if (op.gemm == program::GemmShape{}) return;
        GemmTime& sum = of_shape[op.gemm];
        sum.calls += 1;
        sum.seconds += units::to_seconds(span.end - span.start).value();
        sum.flop += op.flop;
      });
  std::vector<GemmTime> times;
  for (auto& [shape, mean] : of_shape) {
    mean.shape = shape;
    for (double* const sum : {&mean.calls, &mean.seconds, &mean.flop}) {
      *sum /= static_cast<double>(traces);
    }
    times.push_back(mean);
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &GemmTime::seconds);
  return times;
}

std::vector<LinkShare> link_shares(const results::RunData& run, const results::PointData& point,
                                   const TracedSteps& traced,
                                   const results::CalibrationData& calibration) {
  if (traced.steps.empty() || calibration.curves.empty()) return {};
  Curves curves{run, point, calibration};
  std::map<Kind, Sums> sums;
  double steps = 0;  // traced steps, summed over ranks
  for (const TracedStep& step : traced.steps) {
    for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
      // If the waits of a rank are not known, its transfer time is not known either.
      if (step.traces[rank] == nullptr || step.waits[rank].empty()) continue;
      add_rank(point, step, static_cast<int>(rank), curves, sums);
      ++steps;
    }
  }
  std::vector<LinkShare> shares;
  for (const auto& [kind, sum] : sums) {
    if (!sum.known || !(sum.measured > 0)) continue;
    shares.push_back({.op = std::string{program::name(kind.op)},
                      .axes = mesh::to_string(kind.axes),
                      .link_class = sum.link_class,
                      .alone = sum.alone / steps,
                      .measured = sum.measured / steps,
                      .share = sum.alone / sum.measured});
  }
  return shares;
}

std::optional<double> formula_bubble(const results::PointData& point) {
  const auto schedule = point.options.find("schedule");
  const int microbatches = count_of(point, "microbatches");
  if (schedule == point.options.end() || microbatches == 0 || point.mesh.pp < 2) {
    return std::nullopt;
  }
  using workloads::stack::Schedule, workloads::stack::schedule_names;
  const auto name = std::ranges::find(schedule_names, schedule->second);
  if (name == schedule_names.end()) return std::nullopt;
  workloads::stack::Pipeline pipeline{
      .schedule = static_cast<Schedule>(name - schedule_names.begin()),
      .stages = point.mesh.pp,
      .microbatches = microbatches};
  if (pipeline.schedule == Schedule::interleaved) {
    pipeline.chunks = std::max(1, count_of(point, "v"));
  }
  const double idle = workloads::stack::ideal_bubble(pipeline);  // idle time / compute time
  return idle / (1 + idle);
}

std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                              const TracedSteps& traced) {
  if (point.mesh.pp < 2) return std::nullopt;
  return PipelineReport{.formula_bubble = formula_bubble(point),
                        .hand_over = hand_over_times(point, traced)};
}

}  // namespace isoscale::analysis::breakdown
