// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/forecast_point.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "analysis/predict/next_measurement.hpp"
#include "analysis/predict/peak_rate.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "analysis/report.hpp"
#include "workloads/hybrid/experts.hpp"

namespace isoscale::analysis {
namespace {

/// Whatever the step costs, by cause, made longer by `factor`.
void stretch(StepCosts& costs, double factor) {
  for (double* const part :
       {&costs.gemm, &costs.other_compute, &costs.copies, &costs.bubble, &costs.waiting,
        &costs.uneven, &costs.hiccups, &costs.gap, &costs.other}) {
    *part *= factor;
  }
  for (std::optional<double>* const part : {&costs.gemm_alone, &costs.gemm_overlap,
                                            &costs.communication, &costs.imbalance, &costs.noise}) {
    if (*part) **part *= factor;
  }
  for (auto& [axes, seconds] : costs.transfer) seconds *= factor;
}

/// Simulated ranks of a class are all alike in every step: who waits does so for the schedule or
/// for stages that have more to do, and all noise is what `delay` adds.
void add_noise(StepCosts& costs, double delay) {
  costs.imbalance = costs.waiting;
  costs.noise = delay;
  costs.hiccups += delay;
  costs.waiting += delay;
}

/// Fills what the trace of the simulated step tells.
void add_parts(const StepEstimate& estimate, double correction, Forecast& forecast) {
  if (!estimate.point) return;
  const BreakdownResult parts = breakdown(*estimate.point);
  if (!parts.mean) return;
  forecast.costs = step_costs(*estimate.point, parts);
  forecast.breakdown = *parts.mean;
  forecast.breakdown->wait += estimate.delay;
  forecast.breakdown->step += estimate.delay;
  *forecast.breakdown *= correction;
  if (!forecast.costs) return;
  add_noise(*forecast.costs, estimate.delay);
  stretch(*forecast.costs, correction);
}

std::optional<double> mfu_of(const StepEstimate& estimate, const simulate::Machine& machine,
                             const Forecast& forecast) {
  const std::optional<double> peak = peak_rate(machine, forecast.request.precision);
  const std::optional<double> flop =
      estimate.point ? model_flop_per_step(*estimate.point) : std::nullopt;
  if (!peak || !flop) return std::nullopt;
  // The point is of one rank a class.
  const double of_all = *flop * forecast.ranks / estimate.point->ranks;
  return of_all / forecast.step_time.value / forecast.ranks / *peak;
}

Uncertainty uncertainty_of(const Question& question, const Forecast& forecast) {
  if (question.fit) return uncertainty_at(*question.fit, question.machine, forecast);
  const simulate::Noise& noise = question.machine.noise;
  return {.noise = 0, .launch = noise.launch, .fit = sheet_error};
}

bool is_extrapolated(const Question& question, int ranks) {
  return question.fit && ranks > most_trusted_growth * question.fit->most_ranks;
}

}  // namespace

int nodes_of(int ranks, int node_ranks) { return (ranks + node_ranks - 1) / node_ranks; }

Expected expected(double value, const Uncertainty& uncertainty) {
  const double factor = std::exp(interval_90 * total(uncertainty));
  return {.value = value, .lower = value / factor, .upper = value * factor};
}

simulate::Layout layout_of(const workloads::Request& request, int node_ranks) {
  const simulate::Layout packed = simulate::packed(request.mesh.size(), node_ranks);
  simulate::Layout layout;
  layout.node_of_rank.reserve(packed.node_of_rank.size());
  for (const int place : workloads::hybrid::expert_places(request)) {
    layout.node_of_rank.push_back(packed.node_of_rank[static_cast<std::size_t>(place)]);
  }
  return layout;
}

double sheet_step_time(const workloads::Workload& workload, const workloads::Request& request,
                       simulate::Machine sheet, int node_ranks) {
  if (sheet.network) sheet.network->node_ranks = node_ranks;
  const StepEstimate estimate =
      estimate_step(workload, request, sheet, layout_of(request, node_ranks), Detail::time);
  return estimate.simulated + estimate.delay;
}

Forecast forecast_of(const Question& question, const simulate::Machine& machine,
                     workloads::Request request, int node_ranks) {
  Forecast forecast{.ranks = request.mesh.size(),
                    .nodes = nodes_of(request.mesh.size(), node_ranks)};
  const StepEstimate estimate =
      estimate_step(*question.workload, request, machine, layout_of(request, node_ranks),
                    Detail::trace, question.each);
  forecast.request = std::move(request);
  forecast.simulated = estimate.simulated;
  forecast.delay = estimate.delay;
  forecast.memory_per_rank = estimate.memory_per_rank;
  if (machine.memory && machine.memory->capacity > 0) {
    forecast.fits = estimate.device_memory_per_rank <= machine.memory->capacity;
  }
  forecast.extrapolated = is_extrapolated(question, forecast.ranks);
  const double correction = question.fit ? question.fit->correction : 1;
  const double step = (estimate.simulated + estimate.delay) * correction;
  forecast.step_time.value = step;
  forecast.throughput.value = estimate.work / step;
  forecast.uncertainty = uncertainty_of(question, forecast);
  forecast.step_time = expected(step, forecast.uncertainty);
  forecast.throughput = expected(estimate.work / step, forecast.uncertainty);
  add_parts(estimate, correction, forecast);
  forecast.mfu = mfu_of(estimate, machine, forecast);
  return forecast;
}

}  // namespace isoscale::analysis
