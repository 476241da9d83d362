// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "simulate/classes.hpp"
#include "simulate/each_rank.hpp"
#include "simulate/fold.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {
namespace {

using simulate::Classes;
using units::Nanoseconds;

constexpr program::Section step_section = program::Section::step;

/// The causes of waiting are told apart from two traced steps on.
constexpr std::uint32_t traced_steps = 2;

double arena_bytes(const program::RankProgram& program, program::Space space) {
  return static_cast<double>(program.arena_bytes[static_cast<std::size_t>(space)]);
}

double total_bytes(const program::RankProgram& program) {
  double sum = 0;
  for (const std::uint64_t bytes : program.arena_bytes) sum += static_cast<double>(bytes);
  return sum;
}

double flop_of(const program::Outline& outline) {
  double sum = 0;
  for (const program::OutlineOp& op : outline.ops) sum += op.flop;
  return sum;
}

/// Each rank of the classes stands for as many.
double flop_of_step(const Classes& classes, const mesh::Shape& mesh) {
  double sum = 0;
  for (const std::uint32_t outline : classes.outline.outline_of_rank) {
    sum += flop_of(classes.outline.outlines[outline]);
  }
  return sum * mesh.size() / classes.outline.mesh.size();
}

/// The played step as number `number` of a run.
timeline::Timeline as_step(const simulate::ClassStep& step, std::uint32_t number) {
  timeline::Timeline timeline = step.timeline;
  const Nanoseconds shift =
      units::to_nanoseconds(units::Seconds{step.seconds}) * static_cast<std::int64_t>(number);
  for (timeline::StepTrace& trace : timeline.ranks) {
    trace.step = number;
    trace.begin += shift;
    trace.end += shift;
    for (timeline::Span& span : trace.spans) {
      span.start += shift;
      span.end += shift;
    }
  }
  return timeline;
}

/// What ops take with nothing beside them is what they cost before overlap stretched them.
std::vector<results::SoloTimes> solo_times(const Classes& classes, const simulate::Costs& costs) {
  std::vector<results::SoloTimes> result;
  for (int rank = 0; rank < classes.outline.mesh.size(); ++rank) {
    const program::Outline& outline = classes.outline.of(rank);
    results::SoloTimes solo{
        .rank = rank, .op = costs.tables[costs.table_of_rank[static_cast<std::size_t>(rank)]]};
    for (std::size_t op = 0; op < solo.op.size(); ++op) {
      if (program::communicates(outline.ops[op].kind)) solo.op[op] = Nanoseconds{0};
    }
    result.push_back(std::move(solo));
  }
  return result;
}

/// All that the point of a run file has of options, complete.
void describe(const workloads::Workload& workload, const workloads::Request& request,
              results::PointData& point) {
  point.workload = workload.name;
  point.model = request.model.name;
  point.dtype = workloads::name(request.precision);
  const workloads::OptionReader options{workload.options, request.options};
  for (const workloads::OptionSpec& spec : workload.options) {
    if (options.has(spec.key)) point.options[std::string{spec.key}] = options.text(spec.key);
  }
  point.seed = request.seed;
  point.throughput_unit = workload.throughput_unit;
}

results::PointData make_point(const workloads::Workload& workload,
                              const workloads::Request& request, const program::ProgramSet& set,
                              const Classes& classes, const simulate::Costs& costs,
                              const simulate::ClassStep& step) {
  results::PointData point;
  describe(workload, request, point);
  point.mesh = request.mesh;
  point.ranks = classes.outline.mesh.size();
  point.work_per_step = workload.work_per_step(request);
  point.outline = classes.outline;
  const auto ranks = static_cast<std::size_t>(point.ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    point.flop_of_rank.push_back(flop_of(point.outline.of(static_cast<int>(rank))));
    point.memory_of_rank.push_back(total_bytes(set.programs[classes.program[rank]]));
  }
  point.clock_offset.assign(ranks, 0);
  point.clock_error.assign(ranks, 0);
  for (std::uint32_t number = 0; number < traced_steps; ++number) {
    point.traces.push_back(as_step(step, number));
    point.step_times.emplace_back(ranks, step.seconds);
  }
  point.traced.assign(traced_steps, 1);
  point.dropped.assign(traced_steps, 0);
  point.solo_times = solo_times(classes, costs);
  return point;
}

double delay_of(const program::ProgramSet& set, const Classes& classes,
                const simulate::Costs& costs, const simulate::ClassStep& step,
                const simulate::Machine& machine, const simulate::Layout& layout, Ranks ranks) {
  if (!machine.noise.any()) return 0;
  if (ranks == Ranks::by_class) {
    return simulate::expected_delay(set, classes, costs, step, machine.noise, layout);
  }
  const std::vector<double> steps =
      simulate::play_each_rank(set, step_section, classes, costs, machine.noise, layout)
          .step_seconds;
  const double mean = std::reduce(steps.begin(), steps.end()) /
                      static_cast<double>(std::max<std::size_t>(1, steps.size()));
  return mean - step.seconds;
}

/// Throws unless the request is of steps, and every rank has its place.
void require_steps(const workloads::Workload& workload, const workloads::Request& request,
                   const simulate::Layout& layout) {
  if (workload.is_bench()) {
    throw base::UsageError(fmt::format(
        "workload {} has no step to predict, it measures parts of a machine; choose one that "
        "trains, as --workload hybrid",
        workload.name));
  }
  if (std::cmp_equal(layout.node_of_rank.size(), request.mesh.size())) return;
  throw std::invalid_argument(fmt::format("{} ranks are placed on nodes, but the mesh has {}",
                                          layout.node_of_rank.size(), request.mesh.size()));
}

}  // namespace

StepEstimate estimate_step(const workloads::Workload& workload, const workloads::Request& request,
                           const simulate::Machine& machine, const simulate::Layout& layout,
                           Detail detail, Ranks ranks) {
  require_steps(workload, request, layout);
  return estimate_step(workload, request, workload.build(request), machine, layout, detail, ranks);
}

StepEstimate estimate_step(const workloads::Workload& workload, const workloads::Request& request,
                           const program::ProgramSet& set, const simulate::Machine& machine,
                           const simulate::Layout& layout, Detail detail, Ranks ranks) {
  require_steps(workload, request, layout);
  const Classes classes = simulate::classes_of(set, step_section);
  const simulate::Costs costs = simulate::class_costs(classes, set, step_section, machine, layout);
  const auto record = detail == Detail::trace ? simulate::Record::spans : simulate::Record::steps;
  Classes played = classes;
  if (machine.folded) played.outline = simulate::folded(std::move(played.outline));
  const simulate::ClassStep step = simulate::play_classes(played, costs, machine.overlap, record);
  const StepMemory memory = step_memory(set);
  StepEstimate estimate{.simulated = step.seconds,
                        .delay = delay_of(set, played, costs, step, machine, layout, ranks),
                        .memory_per_rank = memory.all,
                        .device_memory_per_rank = memory.device,
                        .flop = flop_of_step(classes, request.mesh),
                        .work = workload.work_per_step(request)};
  if (detail == Detail::trace) {
    estimate.point = make_point(workload, request, set, classes, costs, step);
    estimate.point->folded = machine.folded;
  }
  return estimate;
}

StepMemory step_memory(const program::ProgramSet& set) {
  StepMemory largest;
  for (const program::RankProgram& program : set.programs) {
    const double all = total_bytes(program);
    const double host = arena_bytes(program, program::Space::pinned) +
                        arena_bytes(program, program::Space::pageable);
    largest.all = std::max(largest.all, all);
    largest.device = std::max(largest.device, all - host);
  }
  return largest;
}

}  // namespace isoscale::analysis
