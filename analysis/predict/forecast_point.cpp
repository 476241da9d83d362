// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "analysis/predict/forecast.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::analysis::predict {

std::optional<MfuCeiling> mfu_ceiling(const simulate::Machine& machine,
                                      program::Precision precision) {
  const auto& ceilings = machine.measured.gemm_ceilings;
  if (const auto known = ceilings.find(program::name(precision)); known != ceilings.end()) {
    return MfuCeiling{.rate = known->second, .what = "the best multiplication of the run"};
  }
  const workloads::stack::Types types = workloads::stack::types_of(precision);
  double best = 0;
  for (const simulate::TimedGemm& gemm : machine.measured.gemms) {
    if (gemm.type != types.operand || gemm.mode != types.mode || !(gemm.seconds > 0)) continue;
    best = std::max(best, gemm.rate());
  }
  if (best > 0) {
    return MfuCeiling{.rate = best, .what = "the fastest multiplication of the run's steps"};
  }
  if (!machine.processor) return std::nullopt;
  for (const simulate::MatrixRate& rate : machine.processor->matrix) {
    if (rate.type == types.operand && rate.mode == types.mode) {
      return MfuCeiling{.rate = rate.peak, .what = "the data sheet's peak"};
    }
  }
  return std::nullopt;
}

namespace {

/// Fills in the forecast's breakdown and costs: those of the simulated step plus the delay by
/// noise, multiplied by `correction`.
void add_parts(const StepEstimate& estimate, double correction, Forecast& forecast) {
  forecast.breakdown = breakdown_of(estimate, correction);
  if (!estimate.breakdown || !estimate.loss) return;
  efficiency::StepCosts costs = estimate.loss->costs;
  // A simulated step has no noise, so its ranks wait only because of the schedule or because some
  // stages have more work: this waiting is imbalance.
  costs.imbalance = costs.waiting;
  costs.noise = estimate.delay;
  costs.hiccups += estimate.delay;
  costs.waiting += estimate.delay;
  forecast.costs = costs;
  add(costs, correction - 1, *forecast.costs);
}

std::optional<double> mfu_of(const StepEstimate& estimate, const simulate::Machine& machine,
                             const Forecast& forecast) {
  const std::optional<MfuCeiling> ceiling = mfu_ceiling(machine, forecast.request.precision);
  if (!ceiling || !estimate.model_flop) return std::nullopt;
  return *estimate.model_flop / forecast.step_time.value / forecast.ranks / ceiling->rate;
}

Uncertainty uncertainty_of(const Question& question, const Forecast& forecast) {
  if (question.fit) {
    return uncertainty_with(*question.fit, fit_parts(*question.fit, question.machine, forecast));
  }
  // Each doubling of ranks beyond the largest job behind the software's profile adds 1% of error.
  constexpr double per_doubling = 0.01;
  const simulate::Machine& sheet = question.machine;
  const int known = sheet.software.most_ranks;
  const double growth = known > 0 ? static_cast<double>(forecast.ranks) / known : 1;
  const double distance = per_doubling * std::max(0.0, std::log2(growth));
  return {.noise = 0,
          .launch = sheet.noise.launch,
          .fit = std::hypot(sheet.spread, sheet.software.spread, distance),
          .common = std::hypot(sheet.spread, sheet.software.spread)};
}

/// The relative standard deviation of an efficiency whose baseline is predicted too: the root of
/// the mean square of its errors against published series is 1.9 points (docs/predicting.md).
constexpr double efficiency_error = 0.02;

/// Returns the uncertainty of `efficiency` against a predicted baseline. An error that changes both
/// step times alike (`common`) cancels, except that it changes the share of the step that is lost.
Uncertainty of_efficiency(Uncertainty uncertainty, double efficiency) {
  if (uncertainty.common == 0) return uncertainty;
  const double apart =
      std::sqrt(std::max(0.0, std::pow(uncertainty.fit, 2) - std::pow(uncertainty.common, 2)));
  uncertainty.fit =
      std::hypot(apart, efficiency_error, uncertainty.common * std::abs(1 - efficiency));
  return uncertainty;
}

/// The name of a loss that the waterfall cannot explain and calls "untraced". In a forecast this is
/// the difference between prediction and measurement at the baseline.
constexpr std::string_view beyond_model = "beyond the model";

efficiency::Waterfall lost_time(const efficiency::StepLoss& of_point,
                                const ForecastBaseline& baseline) {
  efficiency::Waterfall result = efficiency::waterfall(of_point, baseline.loss);
  // A cause that one of the steps lacks takes no time in it, so the comparison is complete.
  result.missing.clear();
  result.explains = true;
  // step_loss() sets the slowest rank's step time equal to the mean over ranks, so the loss "uneven
  // steps", which is the difference of these, is always 0.
  std::erase_if(result.lost,
                [](const efficiency::LostTime& lost) { return lost.cause == "uneven steps"; });
  result.lost.back().cause = beyond_model;
  return result;
}

/// Returns the most expensive cause; "" if none costs more than a thousandth of the step. The time
/// that the model does not explain is not a property of the machine, so it is never named.
std::string limit_of(const efficiency::Waterfall& waterfall) {
  std::string limit;
  double most = 0.001 * waterfall.measured;
  for (const efficiency::LostTime& lost : waterfall.lost) {
    if (lost.cause == beyond_model || lost.seconds <= most) continue;
    most = lost.seconds;
    limit = lost.cause;
  }
  return limit;
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
  return estimate_step({workload, sheet, layout_of(request, node_ranks)}, request).seconds();
}

Forecast forecast_of(const Question& question, const simulate::Machine& machine,
                     workloads::Request request, int node_ranks) {
  Forecast forecast{.ranks = request.mesh.size(),
                    .nodes = nodes_of(request.mesh.size(), node_ranks)};
  const StepEstimate estimate = estimate_step(
      {*question.workload, machine, layout_of(request, node_ranks), Detail::trace, question.each},
      request);
  forecast.request = std::move(request);
  forecast.simulated = estimate.simulated;
  forecast.delay = estimate.delay;
  forecast.memory = estimate.memory;
  if (machine.memory && machine.memory->capacity > 0) {
    forecast.fits = estimate.memory.device <= machine.memory->capacity;
  }
  forecast.extrapolated =
      question.fit && forecast.ranks > most_trusted_growth * question.fit->most_ranks;
  const double correction = question.fit ? question.fit->correction : 1;
  const double step = estimate.seconds() * correction;
  forecast.uncertainty = uncertainty_of(question, forecast);
  forecast.step_time = expected(step, forecast.uncertainty);
  forecast.throughput = expected(estimate.work / step, forecast.uncertainty);
  const bool has_tokens = question.workload->model_use != workloads::ModelUse::none;
  if (has_tokens) forecast.work_growth = forecast.request.growth;
  add_parts(estimate, correction, forecast);
  forecast.mfu = mfu_of(estimate, machine, forecast);
  return forecast;
}

std::optional<efficiency::StepLoss> step_loss(const Forecast& forecast) {
  if (!forecast.costs) return std::nullopt;
  const double step = forecast.step_time.value;
  return efficiency::StepLoss{.step = step,
                              .traced = step,
                              .slowest = step,
                              .work = forecast.throughput.value * step,
                              .ranks = forecast.ranks,
                              .costs = *forecast.costs};
}

void set_against(const ForecastBaseline& baseline, Forecast& forecast) {
  const bool itself = !baseline.measured && forecast.ranks == baseline.ranks;
  const double speedup = forecast.throughput.value / baseline.throughput * baseline.ranks;
  const double efficiency = speedup / forecast.ranks;
  const Uncertainty uncertainty =
      itself ? Uncertainty{} : of_efficiency(forecast.uncertainty, efficiency);
  forecast.speedup = expected(speedup, uncertainty);
  forecast.efficiency = expected(efficiency, uncertainty);
  const std::optional<efficiency::StepLoss> loss = step_loss(forecast);
  if (!loss || itself) return;
  forecast.waterfall = lost_time(*loss, baseline);
  forecast.limit = limit_of(*forecast.waterfall);
}

}  // namespace isoscale::analysis::predict
