// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "simulate/classes.hpp"
#include "simulate/noise_delay.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {
namespace {

using simulate::Classes;
using units::Nanoseconds;

constexpr program::Section step_section = program::Section::step;

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
  PlayedStep played{.classes = simulate::classes_of(set, step_section)};
  const Classes& classes = played.classes;
  played.costs = simulate::class_costs(classes, set, step_section, machine, layout);
  const std::optional<Classes> folded =
      machine.folded ? std::optional{as_folded(classes)} : std::nullopt;
  const Classes& as_played = folded ? *folded : classes;
  played.folded = machine.folded;
  played.step =
      simulate::play_classes(as_played, played.costs, machine.overlap, simulate::Record::steps);
  for (const std::uint32_t program : classes.program) {
    played.flop_of_rank.push_back(flop_of(classes.outline.outlines[program]));
    played.memory_of_rank.push_back(total_bytes(set.programs[program]));
  }
  const double flop = std::reduce(played.flop_of_rank.begin(), played.flop_of_rank.end());
  const StepMemory memory = step_memory(set);
  StepEstimate estimate{
      .simulated = played.step.seconds,
      .delay = delay_of(set, as_played, played.costs, played.step, machine, layout, ranks),
      .memory_per_rank = memory.all,
      .device_memory_per_rank = memory.device,
      .flop = flop * request.mesh.size() / classes.outline.mesh.size(),  // as many for each
      .work = workload.work_per_step(request)};
  if (detail == Detail::trace) estimate.point = trace(workload, request, std::move(played));
  if (detail == Detail::play) estimate.played = std::move(played);
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
