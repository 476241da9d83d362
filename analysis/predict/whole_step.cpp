// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/whole_step.hpp"

#include <limits>
#include <string>
#include <utility>

#include "analysis/efficiency/losses.hpp"
#include "workloads/stack/stage.hpp"

namespace isoscale::analysis {
namespace {

using workloads::Request;
using workloads::Workload;

void add_costs(const results::PointData& point, int ranks, WholeStep& result) {
  BreakdownResult split = breakdown(point);
  result.breakdown = split.mean;
  // All steps are like the one that was traced: who comes late does so in each of them.
  if (split.mean && split.wait_known) split.waits = WaitSplit{.imbalance = split.mean->wait};
  const std::optional<StepCosts> costs = step_costs(point, split);
  if (!costs || !split.mean) return;
  result.loss = StepLoss{.step = result.seconds,
                         .traced = split.mean->step,
                         .slowest = split.slowest_step,
                         .work = result.work,
                         .ranks = ranks,
                         .costs = *costs};
}

}  // namespace

WholeStep whole_step(const Workload& workload, const Request& request,
                     const simulate::Machine& machine, int node_ranks, Detail detail,
                     double most_bytes) {
  const program::ProgramSet set = workload.build(request);
  const StepMemory memory = step_memory(set);
  WholeStep result{.seconds = std::numeric_limits<double>::infinity(),
                   .bytes = memory.all,
                   .device_bytes = memory.device};
  if (memory.device > most_bytes) return result;
  const simulate::Layout layout = simulate::packed(request.mesh.size(), node_ranks);
  StepEstimate estimate = estimate_step(workload, request, set, machine, layout, detail);
  result.seconds = estimate.simulated + estimate.delay;
  result.work = estimate.work;
  result.played = std::move(estimate.played);
  if (estimate.point) add_costs(*estimate.point, request.mesh.size(), result);
  return result;
}

double stage_device_bytes(const Request& request, int stage) {
  const mesh::Coordinates at{.dp = workloads::stack::replica_programs(request).front(),
                             .pp = stage};
  program::ProgramSet one{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  one.programs.push_back(workloads::stack::build_stage(request, at));
  return step_memory(one).device;
}

void trace(const Workload& workload, const Request& request, WholeStep& step) {
  const results::PointData point = trace(workload, request, *std::move(step.played));
  step.played.reset();
  add_costs(point, request.mesh.size(), step);
}

double layer_passes(const Request& request) {
  const auto microbatches = request.options.find("microbatches");
  const double layers = request.model.layers;
  return microbatches == request.options.end() ? layers : layers * std::stod(microbatches->second);
}

}  // namespace isoscale::analysis
