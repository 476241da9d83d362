// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/played_step.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "simulate/simulate.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {
namespace {

using simulate::Classes;
using units::Nanoseconds;

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

}  // namespace

std::size_t op_count(const PlayedStep& played) {
  std::size_t count = 0;
  for (const program::Outline& outline : played.classes.outline.outlines) {
    count += outline.ops.size();
  }
  return count;
}

Classes as_folded(const Classes& classes) {
  Classes result = classes;
  result.outline = simulate::folded(std::move(result.outline));
  return result;
}

results::PointData trace(const workloads::Workload& workload, const workloads::Request& request,
                         PlayedStep played) {
  Classes& classes = played.classes;
  if (played.folded) {
    simulate::record_spans(as_folded(classes), played.step);
  } else {
    simulate::record_spans(classes, played.step);
  }
  results::PointData point;
  describe(workload, request, point);
  point.mesh = request.mesh;
  point.ranks = classes.outline.mesh.size();
  point.work_per_step = workload.work_per_step(request);
  point.solo_times = solo_times(classes, played.costs);
  point.outline = std::move(classes.outline);
  const auto ranks = static_cast<std::size_t>(point.ranks);
  point.flop_of_rank = std::move(played.flop_of_rank);
  point.memory_of_rank = std::move(played.memory_of_rank);
  point.clock_offset.assign(ranks, 0);
  point.clock_error.assign(ranks, 0);
  point.step_times.emplace_back(ranks, played.step.seconds);
  point.traces.push_back(std::move(played.step.timeline));
  point.traced.assign(1, 1);
  point.dropped.assign(1, 0);
  point.folded = played.folded;
  return point;
}

}  // namespace isoscale::analysis
