// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "results/records/measured_step_time.hpp"
#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

using results::PointData;

/// A measured point: log2 of its rank count, the logarithm of its measured over its simulated step
/// time, and the relative standard error of the measured time.
struct Ratio {
  double doublings = 0, log = 0, error = 0;
};

/// The assumed relative error of a prediction for twice the ranks before any prediction is tested,
/// and the number of points that this assumption (the prior) counts as.
constexpr double expected_error = 0.04, expected_weight = 2;
/// The probability that lies beyond each end of a forecast's 90% interval.
constexpr double tail_90 = 0.05;

/// Returns the weight of a point whose rank count is this many doublings away from the predicted
/// one: each doubling divides the weight by four. The communication time that the model misses
/// grows with ranks, so the largest points tell most about the error at larger counts.
double weight_at(double doublings_away) { return std::exp2(-2 * std::abs(doublings_away)); }

/// Returns the weight of a point by its precision. It is low if the standard error of the point's
/// measured time is large compared with the expected error of predictions.
double precision_of(const Ratio& ratio) {
  const double relative = ratio.error / expected_error;
  return 1 / (1 + relative * relative);
}

/// Returns the weighted mean of the first `count` points' logarithms of measured over simulated
/// time. Points near 2^doublings ranks and precise points have more weight.
double mean_log(const std::vector<Ratio>& ratios, std::size_t count, double doublings) {
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = weight_at(doublings - ratios[i].doublings) * precision_of(ratios[i]);
    sum += weight * ratios[i].log;
    weights += weight;
  }
  return sum / weights;
}

/// Returns the change, for each doubling of ranks, of the logarithm of measured over simulated
/// time, by weighted least squares. The larger the slope's own error, the more it is reduced
/// towards 0. Returns 0 for fewer than three points, since two points always lie on a line.
double drift_of(const std::vector<Ratio>& ratios) {
  if (ratios.size() < 3) return 0;
  const double last = ratios.back().doublings;
  std::vector<statistics::WeightedPoint> points;
  for (const Ratio& at : ratios) {
    points.push_back({.x = at.doublings, .y = at.log, .weight = weight_at(last - at.doublings)});
  }
  const statistics::WeightedLine line = statistics::weighted_line(points);
  if (!(line.spread > 0)) return 0;
  double residual = 0;
  for (const auto& [x, y, weight] : points) {
    const double off = y - line.intercept - line.slope * x;
    residual += weight * off * off;
  }
  const double freedom = static_cast<double>(ratios.size()) - 2;
  const double error = residual / line.weights * static_cast<double>(ratios.size()) / freedom;
  const double of_slope = error / line.spread;
  return line.slope * std::max(0.0, 1 - of_slope / std::max(line.slope * line.slope, 1e-30));
}

/// Returns the relative standard deviation of a prediction for twice the ranks, from the errors
/// with which the smaller points predict each point.
double one_doubling(const std::vector<Ratio>& ratios) {
  double squares = expected_weight * expected_error * expected_error, count = expected_weight;
  for (std::size_t i = 1; i < ratios.size(); ++i) {
    const double away = ratios[i].doublings - ratios[i - 1].doublings;
    const double weight = weight_at(ratios.back().doublings - ratios[i].doublings);
    const double off = ratios[i].log - mean_log(ratios, i, ratios[i].doublings);
    squares += weight * off * off / std::max(1.0, away);
    count += weight;
  }
  return std::sqrt(squares / count) * statistics::student_quantile(tail_90, count) / interval_90;
}

/// Returns the relative standard error of the median step time, from its 95% interval, which
/// reaches 1.96 standard errors to either side. If there are too few steps for an interval, their
/// times are taken as normally distributed: the error is then sqrt(pi / 2) times the error of a
/// mean. Returns 0 if there are no steps.
double error_of_median(const PointData& point) {
  constexpr double normal_95 = 1.96, of_mean = 1.2533;
  const std::vector<double> times = results::untraced_times(point);
  const auto interval = statistics::estimate(times);
  if (!interval) return 0;
  if (const auto half = statistics::relative_half_width(*interval)) return *half / normal_95;
  return of_mean * step_deviation(point) / std::sqrt(static_cast<double>(times.size()));
}

MeasuredPoint measured_point(const results::RunData& run, const PointData& point,
                             const simulate::Machine& machine) {
  const StepEstimate estimate =
      estimate_step({workloads::find_workload(point.workload), machine, layout_of(run, point)},
                    request_of(point));
  const double time = median_step(point);
  return {.ranks = point.ranks,
          .nodes = point.nodes,
          .mesh = point.mesh,
          .step_time = time,
          .throughput = point.work_per_step / time,
          .simulated = estimate.seconds()};
}

/// Returns the relative uncertainty that remains if the run does not determine two laws: how
/// latency grows with the size of a group, and how a message moves (in parts or as a whole). For
/// each law that is open, it simulates the step under two extreme laws and takes half of the
/// difference between the logarithms of the two times. Returns 0 for a forecast with no more ranks
/// than were measured.
double law_spread(const ModelFit& fit, const simulate::Machine& machine, const Forecast& forecast) {
  const auto& curves = machine.measured.communication;
  if (curves.empty() || fit.workload.empty() || forecast.ranks <= fit.most_ranks) return 0;
  const int nodes = std::max(1, forecast.nodes);
  const simulate::Layout layout =
      simulate::packed(forecast.ranks, (forecast.ranks + nodes - 1) / nodes);
  const auto seconds = [&](const auto& change) {
    simulate::Machine changed = machine;
    changed.noise = {};  // only the time without noise is compared
    change(changed.measured);
    return estimate_step({workloads::find_workload(fit.workload), changed, layout},
                         forecast.request)
        .simulated;
  };
  const auto with_law = [&](simulate::GrowthLaw law) {
    return seconds([law](simulate::Measured& measured) {
      for (simulate::TimedCommunication& curve : measured.communication) {
        if (curve.law == simulate::GrowthLaw::fitted) curve.law = law;
      }
    });
  };
  const auto with_moved = [&](simulate::Moved untold) {
    return seconds([untold](simulate::Measured& measured) { measured.untold = untold; });
  };
  const auto apart = [](double few, double many) {
    return few > 0 && many > 0 ? std::abs(std::log(many / few)) / 2 : 0;
  };
  const bool is_open = std::ranges::any_of(
      curves, [](const auto& curve) { return curve.law == simulate::GrowthLaw::fitted; });
  const double latency = is_open ? apart(with_law(simulate::GrowthLaw::logarithmic),
                                         with_law(simulate::GrowthLaw::proportional))
                                 : 0;
  if (machine.measured.untold == simulate::Moved::parts) return latency;
  return std::hypot(latency, apart(with_moved(simulate::Moved::parts),
                                   with_moved(simulate::Moved::whole_at_once)));
}

}  // namespace

ModelFit fit_model(const results::RunData& run, const std::vector<const PointData*>& points,
                   const simulate::Machine& machine) {
  ModelFit fit;
  std::vector<Ratio> ratios;
  double errors = 0;
  for (const PointData* const point : points) {
    if (!(median_step(*point) > 0)) continue;
    MeasuredPoint& at = fit.points.emplace_back(measured_point(run, *point, machine));
    const MeasuredPoint& first = fit.points.front();
    if (first.throughput > 0) {
      at.efficiency = at.throughput / at.ranks / (first.throughput / first.ranks);
    }
    fit.most_ranks = std::max(fit.most_ranks, at.ranks);
    fit.workload = point->workload;
    if (!(at.simulated > 0)) continue;
    const double error = error_of_median(*point);
    ratios.push_back({.doublings = std::log2(at.ranks),
                      .log = std::log(at.step_time / at.simulated),
                      .error = error});
    errors += error * error;
    fit.known.noise = step_deviation(*point);
  }
  fit.known.launch = machine.noise.launch;
  fit.known.fit = one_doubling(ratios);
  if (ratios.empty()) return fit;
  fit.correction = std::exp(mean_log(ratios, ratios.size(), ratios.back().doublings));
  fit.drift = drift_of(ratios);
  fit.predicted = static_cast<int>(ratios.size()) - 1;
  fit.median_error = std::sqrt(errors / static_cast<double>(ratios.size()));
  return fit;
}

FitParts fit_parts(const ModelFit& fit, const simulate::Machine& machine,
                   const Forecast& forecast) {
  const double times =
      static_cast<double>(std::max(1, forecast.ranks)) / std::max(1, fit.most_ranks);
  const double doublings = std::max(0.0, std::log2(times));
  return {.steps = fit.known.fit * std::sqrt(std::max(1.0, doublings)),
          .drift = fit.drift * doublings,
          .law = law_spread(fit, machine, forecast)};
}

Uncertainty uncertainty_with(const ModelFit& fit, const FitParts& parts) {
  Uncertainty result = fit.known;
  result.fit =
      std::sqrt(parts.steps * parts.steps + parts.drift * parts.drift + parts.law * parts.law);
  return result;
}

}  // namespace isoscale::analysis::predict
