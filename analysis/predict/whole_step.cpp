// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/whole_step.hpp"

#include <limits>
#include <string>

#include "analysis/causes/step_costs.hpp"

namespace isoscale::analysis {
namespace {

using workloads::Request;
using workloads::Workload;

void add_costs(const results::PointData& point, int ranks, WholeStep& result) {
  const BreakdownResult split = breakdown(point);
  result.breakdown = split.mean;
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
  const StepEstimate estimate = estimate_step(workload, request, set, machine, layout, detail);
  result.seconds = estimate.simulated + estimate.delay;
  result.work = estimate.work;
  if (estimate.point) add_costs(*estimate.point, request.mesh.size(), result);
  return result;
}

double layer_passes(const Request& request) {
  const auto microbatches = request.options.find("microbatches");
  const double layers = request.model.layers;
  return microbatches == request.options.end() ? layers : layers * std::stod(microbatches->second);
}

}  // namespace isoscale::analysis
