// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/traced_ops.hpp"

#include <algorithm>
#include <cstddef>

#include "analysis/breakdown/traced_steps.hpp"
#include "analysis/predict/run_machine.hpp"
#include "simulate/measured_time.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis::predict {
namespace {

using results::PointData;

/// The seconds that transfers took in steps, and the seconds that the same calls take alone.
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

/// Returns, for each instance of a collective, the time at which its last member ended; the root of
/// a tree may end much earlier.
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

/// Adds the transfers of one rank's step. A transfer counts as `beside` if most of it overlaps with
/// compute, and as `apart` if hardly any of it does. Transfers in between are left out, as are
/// those that share their link with other communication at the same time.
void add_rank(const PointData& point, const breakdown::TracedStep& step,
              const std::vector<units::Nanoseconds>& ends, int rank, simulate::Places& places,
              const simulate::Measured& measured, Sums& sums) {
  constexpr double mostly = 0.8, hardly = 0.1;
  const timeline::StepTrace& trace = *step.traces[static_cast<std::size_t>(rank)];
  const std::vector<units::Nanoseconds>& waits = step.waits[static_cast<std::size_t>(rank)];
  const program::Outline& outline = point.outline.of(rank);
  const timeline::IntervalSet compute = times_of(
      outline, trace, [](const program::OutlineOp& at) { return program::computes(at.kind); });
  /// By stream: when the rank communicates on other streams.
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
    if (share > hardly && share < mostly) continue;
    if (share_beside(others->second) > hardly) continue;
    Times& times = (share >= mostly ? sums.beside : sums.apart)[op.kind];
    const std::uint32_t instance = step.instance[static_cast<std::size_t>(rank)][span.op];
    const units::Nanoseconds later =
        instance == breakdown::no_instance ? units::Nanoseconds{0} : ends[instance] - span.end;
    times.taken += units::to_seconds(transfer + later).value();
    times.alone += *alone;
  }
}

/// The limit on the factor between a call's time in a step and its time by the calibration curve.
/// Beyond it, the call cannot have done the same as the curve's calls.
constexpr double most = 10;

CommunicationInSteps factors_of(const Sums& sums) {
  CommunicationInSteps result;
  for (const auto& [kind, times] : sums.apart) {
    result.apart[kind] = std::clamp(times.taken / times.alone, 1 / most, most);
  }
  Times beside;
  for (const auto& [kind, times] : sums.beside) {
    const auto apart = result.apart.find(kind);
    beside.taken += times.taken;
    beside.alone += times.alone * (apart == result.apart.end() ? 1 : apart->second);
  }
  if (beside.alone > 0) result.slowdown = std::clamp(beside.taken / beside.alone, 1.0, most);
  return result;
}

}  // namespace

CommunicationInSteps communication_in_steps(const results::RunData& run,
                                            const std::vector<const PointData*>& points,
                                            const simulate::Measured& measured) {
  int most_ranks = 0;
  for (const PointData* const point : points) most_ranks = std::max(most_ranks, point->ranks);
  Sums sums;
  for (const PointData* const point : points) {
    if (point->ranks < 2 || 2 * point->ranks < most_ranks) continue;
    if (!breakdown::outline_problem(*point).empty() || !breakdown::missing_traces(*point).empty())
      continue;
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
  return factors_of(sums);
}

void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart) {
  for (simulate::TimedCommunication& curve : measured.communication) {
    const auto found = apart.find(curve.kind);
    if (found == apart.end()) continue;
    for (simulate::SizeSeconds& at : curve.samples) at.seconds *= found->second;
    if (curve.latency) *curve.latency *= found->second;
    if (curve.bandwidth) *curve.bandwidth /= found->second;
  }
}

}  // namespace isoscale::analysis::predict
