// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "base/error.hpp"
#include "results/records/measured_step_time.hpp"
#include "results/records/point_facts.hpp"
#include "simulate/op_time.hpp"
#include "statistics/estimate.hpp"
#include "timeline/timeline.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

using program::OpKind;
using results::PointData;

/// The properties that determine the time of an op.
struct Shape {
  OpKind kind = OpKind::gemm;
  program::DType type = program::DType::f32;
  program::ComputeMode mode = program::ComputeMode::native;
  program::GemmShape gemm{};
  std::uint64_t bytes = 0;  ///< of the operands; 0 for GEMMs
  auto operator<=>(const Shape&) const = default;
};

/// The times, in seconds, of all ops with one shape. In the names, `alone` are times without
/// communication of the rank at the same time, `beside` times during it.
struct Samples {
  int ranks = 0;                ///< rank count of the points that the times are from
  std::vector<double> alone{};  ///< one mean for each step, over the ops that ran alone
  std::vector<double> solo{};   ///< one mean for each rank, from its step without communication
  /// Sums over ops that did not run alone: time during communication, and the rest of their time.
  double beside = 0, apart = 0;
  std::size_t ops_beside = 0;
};

/// An op counts as alone if at most this share of its time overlaps with communication.
constexpr double hardly = 0.02;

/// The shape of each op of a rank's step; null for communication and for ops without a known shape.
using ShapeOfOp = std::vector<const Shape*>;

/// The samples and sums over all points that are read.
struct Pool {
  std::map<Shape, Samples> shapes{};
  std::vector<double> gaps{};  ///< for each traced step of a rank, mean seconds from op to op
  /// Sums over ops: of the variance of an op's time over steps, and of its squared mean time.
  double deviations = 0, squares = 0;
};

/// Returns the times at which a rank ran the ops for which `counts` returns true.
template <class Counts>
timeline::IntervalSet times_of(const program::Outline& outline, const timeline::StepTrace& trace,
                               const Counts& counts) {
  std::vector<timeline::Interval> intervals;
  for (const timeline::Span& span : trace.spans) {
    if (counts(outline.ops[span.op])) intervals.push_back({span.start, span.end});
  }
  return timeline::normalise(std::move(intervals));
}

class PointReader {
 public:
  PointReader(const PointData& point, Pool& pool) : point_(point), pool_(pool) {
    try {
      const workloads::Workload& workload = workloads::find_workload(point.workload);
      if (workload.build != nullptr) programs_ = workload.build(request_of(point));
    } catch (const base::UsageError&) {
      // This version of the program does not know the point's workload or one of its options. GEMMs
      // then have no known shape and are left out; other ops are identified by their bytes.
    }
  }

  void read() {
    for (const auto& [rank, traces] : breakdown::usable_traces(point_)) {
      for (const timeline::StepTrace* const trace : traces) add_trace(*trace);
      add_deviations(traces);
    }
    for (const results::SoloTimes& solo : point_.solo_times) add_solo(solo);
  }

 private:
  /// Returns the rank's program; null if it cannot be built, or if the program that is built now
  /// differs from the one that ran.
  [[nodiscard]] const program::RankProgram* program_of(int rank) const {
    if (std::cmp_greater_equal(rank, programs_.program_of_rank.size())) return nullptr;
    const program::RankProgram& program = programs_.of(rank);
    const program::Outline& outline = point_.outline.of(rank);
    const auto same = [](const program::Op& op, const program::OutlineOp& played) {
      const auto* gemm = std::get_if<program::Gemm>(&op.payload);
      const double flop = gemm == nullptr ? 0 : simulate::flop_of(simulate::shape_of(*gemm));
      return program::kind_of(op.payload) == played.kind && flop == played.flop;
    };
    return std::ranges::equal(program.step().ops, outline.ops, same) ? &program : nullptr;
  }

  const ShapeOfOp& shapes_of(int rank) {
    const auto [found, added] =
        shapes_.try_emplace(point_.outline.outline_of_rank.at(static_cast<std::size_t>(rank)));
    if (!added) return found->second;
    const program::Outline& outline = point_.outline.of(rank);
    const program::RankProgram* const program = program_of(rank);
    for (std::size_t at = 0; at < outline.ops.size(); ++at) {
      const program::OutlineOp& op = outline.ops[at];
      found->second.push_back(nullptr);
      if (program::communicates(op.kind)) continue;
      Shape shape{.kind = op.kind, .bytes = op.bytes};
      if (op.kind == OpKind::gemm) {
        if (program == nullptr) continue;
        const auto& gemm = std::get<program::Gemm>(program->step().ops[at].payload);
        shape.type = program->buffers[gemm.a.slice.buffer].dtype;
        shape.mode = gemm.mode;
        shape.gemm = simulate::shape_of(gemm);
        shape.bytes = 0;
      }
      const auto [entry, is_new] = pool_.shapes.try_emplace(shape);
      if (is_new) entry->second.ranks = point_.ranks;
      // Points are read in descending order of ranks, so the first one that has a shape has the
      // most ranks. Points with fewer ranks are ignored for this shape.
      if (entry->second.ranks == point_.ranks) found->second.back() = &entry->first;
    }
    return found->second;
  }

  void add_trace(const timeline::StepTrace& trace) {
    const ShapeOfOp& shapes = shapes_of(trace.rank);
    const program::Outline& outline = point_.outline.of(trace.rank);
    const timeline::IntervalSet communication =
        times_of(outline, trace,
                 [](const program::OutlineOp& op) { return program::communicates(op.kind); });
    std::map<const Shape*, std::pair<double, int>> alone;
    for (const timeline::Span& span : trace.spans) {
      const Shape* const shape = shapes[span.op];
      if (shape == nullptr) continue;
      const double time = units::to_seconds(span.end - span.start).value();
      const double beside =
          units::to_seconds(timeline::covered(communication, {span.start, span.end})).value();
      if (beside <= hardly * time) {
        alone[shape].first += time;
        ++alone[shape].second;
      } else {
        Samples& samples = pool_.shapes.at(*shape);
        samples.beside += beside;
        samples.apart += time - beside;
        ++samples.ops_beside;
      }
    }
    for (const auto& [shape, sum] : alone) {
      pool_.shapes.at(*shape).alone.push_back(sum.first / sum.second);
    }
    add_gaps(trace, outline);
  }

  void add_gaps(const timeline::StepTrace& trace, const program::Outline& outline) {
    // ends[stream][i] is the time at which op number i of this stream ended.
    std::vector<std::vector<units::Nanoseconds>> ends(program::max_streams);
    units::Nanoseconds last = trace.begin, sum{0};
    for (const timeline::Span& span : trace.spans) {
      const program::OutlineOp& op = outline.ops[span.op];
      auto& mine = ends.at(op.stream);
      units::Nanoseconds ready = mine.empty() ? trace.begin : mine.back();
      for (const program::Wait& wait : outline.waits_of(op)) {
        const auto& others = ends.at(wait.stream);
        const std::size_t count = std::min<std::size_t>(wait.count, others.size());
        if (count > 0) ready = std::max(ready, others[count - 1]);
      }
      if (point_.folded) ready = last;
      sum += std::max(span.start - ready, units::Nanoseconds{0});
      last = span.end;
      mine.push_back(span.end);
    }
    if (trace.spans.empty()) return;
    pool_.gaps.push_back(units::to_seconds(sum).value() / static_cast<double>(trace.spans.size()));
  }

  /// Adds the variation of single ops from step to step. An op's time is taken relative to the
  /// rank's total compute time in the step, because the variation of this total is counted as noise
  /// of the rank.
  void add_deviations(std::span<const timeline::StepTrace* const> traces) {
    if (traces.size() < 2) return;
    const ShapeOfOp& shapes = shapes_of(traces.front()->rank);
    std::vector<double> sums(traces.size());
    const auto time = [&](std::size_t step, std::size_t op) {
      const timeline::Span& span = traces[step]->spans[op];
      return units::to_seconds(span.end - span.start).value();
    };
    for (std::size_t step = 0; step < traces.size(); ++step) {
      for (std::size_t op = 0; op < shapes.size(); ++op) {
        if (shapes[op] != nullptr) sums[step] += time(step, op);
      }
    }
    const double mean_sum = *statistics::median(sums);
    if (!(mean_sum > 0) || std::ranges::min(sums) <= 0) return;
    const auto count = static_cast<double>(traces.size());
    for (std::size_t op = 0; op < shapes.size(); ++op) {
      if (shapes[op] == nullptr) continue;
      double sum = 0, squares = 0;
      for (std::size_t step = 0; step < traces.size(); ++step) {
        const double at = time(step, op) * mean_sum / sums[step];
        sum += at;
        squares += at * at;
      }
      pool_.deviations += std::max(0.0, squares - sum * sum / count) / (count - 1);
      pool_.squares += sum * sum / (count * count);
    }
  }

  void add_solo(const results::SoloTimes& solo) {
    if (solo.rank < 0 || solo.rank >= point_.ranks) return;
    const ShapeOfOp& shapes = shapes_of(solo.rank);
    if (solo.op.size() != shapes.size()) return;
    std::map<const Shape*, std::pair<double, int>> sums;
    for (std::size_t op = 0; op < shapes.size(); ++op) {
      if (shapes[op] == nullptr) continue;
      sums[shapes[op]].first += units::to_seconds(solo.op[op]).value();
      ++sums[shapes[op]].second;
    }
    for (const auto& [shape, sum] : sums) {
      pool_.shapes.at(*shape).solo.push_back(sum.first / sum.second);
    }
  }

  const PointData& point_;
  Pool& pool_;
  program::ProgramSet programs_{};
  std::map<std::uint32_t, ShapeOfOp> shapes_{};  ///< index: number of the rank's outline
};

/// Returns the time of a shape without communication at the same time: the median from the traces,
/// or else from the steps without communication.
std::optional<double> alone_time(const Samples& samples) {
  if (const auto time = statistics::median(samples.alone)) return time;
  return statistics::median(samples.solo);
}

/// Returns the factor by which ops take longer while their rank communicates, between 1 and 10; 1
/// if it is not known.
double slowdown_of(const Pool& pool) {
  constexpr double most = 10;
  double beside = 0, alone = 0;
  for (const auto& [shape, samples] : pool.shapes) {
    const auto time = alone_time(samples);
    if (!time || samples.ops_beside == 0) continue;
    beside += samples.beside;
    alone += static_cast<double>(samples.ops_beside) * *time - samples.apart;
  }
  return alone > 0 && beside > 0 ? std::clamp(beside / alone, 1.0, most) : 1;
}

bool is_sound(const PointData* point) { return results::is_scaling_result(point->labels); }

/// The seconds of transfers in steps, and those that the calibration gives for the same calls.
struct Times {
  double taken = 0, alone = 0;
};

struct Sums {
  std::map<program::OpKind, Times> beside, apart;
};

bool is_collective(program::OpKind kind) {
  return program::communicates(kind) && kind != program::OpKind::exchange &&
         kind != program::OpKind::barrier;
}

/// Returns the time at which the last member ended, for each instance (one call by all ranks of a
/// group) of a collective. Some members, such as the root of a tree, may end much earlier.
std::vector<units::Nanoseconds> ends_of(const breakdown::TracedStep& step) {
  std::vector<units::Nanoseconds> ends(step.instances);
  for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
    if (step.traces[rank] == nullptr) continue;
    for (const timeline::Span& span : step.traces[rank]->spans) {
      const std::uint32_t instance = step.instance[rank][span.op];
      if (instance != breakdown::no_instance) ends[instance] = std::max(ends[instance], span.end);
    }
  }
  return ends;
}

/// Adds the transfers of one rank's step to `sums`: to `beside` if most of the transfer overlaps
/// with compute, to `apart` if hardly any of it does. Transfers between these limits are left out,
/// and so are those that overlap with the rank's communication on another stream, since they share
/// a link.
void add_rank(const PointData& point, const breakdown::TracedStep& step,
              const std::vector<units::Nanoseconds>& ends, int rank, simulate::Places& places,
              const simulate::Measured& measured, Sums& sums) {
  constexpr double mostly = 0.8, barely = 0.1;
  const timeline::StepTrace& trace = *step.traces[static_cast<std::size_t>(rank)];
  const std::vector<units::Nanoseconds>& waits = step.waits[static_cast<std::size_t>(rank)];
  const program::Outline& outline = point.outline.of(rank);
  const timeline::IntervalSet compute = times_of(
      outline, trace, [](const program::OutlineOp& at) { return program::computes(at.kind); });
  /// Maps each stream to the times at which the rank communicates on other streams.
  std::map<program::StreamId, timeline::IntervalSet> others_of;
  for (const timeline::Span& span : trace.spans) {
    const program::OutlineOp& op = outline.ops[span.op];
    if (!is_collective(op.kind) || mesh::group_size(point.mesh, op.axes) < 2) continue;
    const units::Nanoseconds transfer = breakdown::transfer_time(span, waits[span.op]);
    if (!(transfer.value() > 0)) continue;
    const auto alone =
        simulate::measured_collective_seconds(measured, op.kind, static_cast<double>(op.bytes),
                                              places.of_groups(op.axes)[simulate::at(rank)]);
    if (!alone || !(*alone > 0)) continue;
    const auto [others, is_new] = others_of.try_emplace(op.stream);
    if (is_new) {
      others->second = times_of(outline, trace, [&](const program::OutlineOp& at) {
        return program::communicates(at.kind) && at.stream != op.stream;
      });
    }
    const auto share_beside = [&](const timeline::IntervalSet& set) {
      return timeline::covered(set, {span.end - transfer, span.end}) / transfer;
    };
    const double share = share_beside(compute);
    if (share > barely && share < mostly) continue;
    if (share_beside(others->second) > barely) continue;
    Times& times = (share >= mostly ? sums.beside : sums.apart)[op.kind];
    const std::uint32_t instance = step.instance[static_cast<std::size_t>(rank)][span.op];
    const units::Nanoseconds later =
        instance == breakdown::no_instance ? units::Nanoseconds{0} : ends[instance] - span.end;
    times.taken += units::to_seconds(transfer + later).value();
    times.alone += *alone;
  }
}

/// The limit on the factor between a call's time in a step and its calibrated time. Beyond this
/// factor the two calls cannot have done the same work.
constexpr double most = 10;

/// Returns the factor from calibrated times to times in steps, for calls of this kind that hardly
/// overlap with compute; 1 if there are no such calls.
double factor_apart(const Sums& sums, OpKind kind) {
  const auto found = sums.apart.find(kind);
  if (found == sums.apart.end()) return 1;
  return std::clamp(found->second.taken / found->second.alone, 1 / most, most);
}

}  // namespace

std::vector<const PointData*> stepped_points(const results::RunData& run) {
  std::vector<const PointData*> points;
  for (const PointData& point : run.points) {
    if (point.status != results::PointStatus::ok || point.step_times.empty()) continue;
    if (!step_blocks(point).empty()) points.push_back(&point);
  }
  if (std::ranges::any_of(points, is_sound)) {
    std::erase_if(points, [](const PointData* point) { return !is_sound(point); });
  }
  return points;
}

TracedOps traced_ops(const results::RunData& run) {
  std::vector<const PointData*> points = stepped_points(run);
  std::erase_if(points,
                [](const PointData* point) { return !breakdown::missing_traces(*point).empty(); });
  std::ranges::stable_sort(points, std::ranges::greater{}, &PointData::ranks);
  Pool pool;
  for (const PointData* const point : points) PointReader{*point, pool}.read();
  TracedOps result{.compute_slowdown = slowdown_of(pool)};
  result.gap = statistics::median(pool.gaps);
  if (pool.squares > 0) result.op_noise = std::sqrt(pool.deviations / pool.squares);
  for (const auto& [shape, samples] : pool.shapes) {
    auto time = alone_time(samples);
    if (!time && samples.ops_beside > 0) {
      time = (samples.apart + samples.beside / result.compute_slowdown) /
             static_cast<double>(samples.ops_beside);
    }
    if (!time || !(*time > 0)) continue;
    if (shape.kind == OpKind::gemm) {
      result.gemms.push_back(
          {.type = shape.type, .mode = shape.mode, .shape = shape.gemm, .seconds = *time});
    } else {
      result.locals.push_back(
          {.kind = shape.kind, .bytes = static_cast<double>(shape.bytes), .seconds = *time});
    }
  }
  return result;
}

double stretch_as_in_steps(const results::RunData& run, const std::vector<const PointData*>& points,
                           simulate::Measured& measured) {
  int most_ranks = 0;
  for (const PointData* const point : points) most_ranks = std::max(most_ranks, point->ranks);
  Sums sums;
  for (const PointData* const point : points) {
    if (point->ranks < 2 || 2 * point->ranks < most_ranks) continue;
    if (!breakdown::missing_traces(*point).empty()) continue;
    const simulate::Layout layout = layout_of(run, *point);
    simulate::Places places{point->mesh, layout};
    const breakdown::TracedSteps traced = breakdown::traced_steps(*point);
    if (!traced.knows_waits()) continue;
    for (const breakdown::TracedStep& step : traced.steps) {
      const std::vector<units::Nanoseconds> ends = ends_of(step);
      for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
        if (step.traces[rank] == nullptr || step.waits[rank].empty()) continue;
        add_rank(*point, step, ends, static_cast<int>(rank), places, measured, sums);
      }
    }
  }
  for (simulate::TimedCommunication& curve : measured.communication) {
    const double factor = factor_apart(sums, curve.kind);
    for (simulate::SizeSeconds& at : curve.samples) at.seconds *= factor;
    if (curve.latency) *curve.latency *= factor;
    if (curve.bandwidth) *curve.bandwidth /= factor;
  }
  Times beside;
  for (const auto& [kind, times] : sums.beside) {
    beside.taken += times.taken;
    beside.alone += times.alone * factor_apart(sums, kind);
  }
  return beside.alone > 0 ? std::clamp(beside.taken / beside.alone, 1.0, most) : 1;
}

}  // namespace isoscale::analysis::predict
