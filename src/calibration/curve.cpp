// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "calibration/fit_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"

namespace isoscale::calibration {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::CurveSample;
using results::Fitted;

/// Returns the logarithm of a size; a barrier's 0 bytes count as 1.
double log_size(double bytes) { return std::log(std::max(bytes, 1.0)); }

std::vector<CurveSample> medians(std::span<const CurveSample> samples) {
  std::map<double, std::vector<double>> times;
  for (const CurveSample& sample : samples) {
    const bool known = std::isfinite(sample.time) && sample.time > 0 && sample.bytes >= 0;
    if (known) times[sample.bytes].push_back(sample.time);
  }
  std::vector<CurveSample> result;
  for (const auto& [bytes, of_size] : times) {
    result.push_back({.bytes = bytes, .time = *statistics::median(of_size)});
  }
  return result;
}

std::vector<double> monotone(std::span<const CurveSample> sizes) {
  std::vector<double> logs(sizes.size());
  std::ranges::transform(sizes, logs.begin(),
                         [](const CurveSample& at) { return std::log(at.time); });
  return statistics::isotonic(logs);
}

/// The scale on which a curve is straight between sizes.
enum class Form : std::uint8_t { log, linear };
constexpr std::string_view linear_name = "linear";

/// Returns log time at `bytes`, which lies between the first and the last size.
double interpolated(std::span<const CurveSample> sizes, std::span<const double> logs, double bytes,
                    Form form) {
  const auto above = std::ranges::lower_bound(sizes, bytes, {}, &CurveSample::bytes);
  const auto at = static_cast<std::size_t>(above - sizes.begin());
  if (at == 0 || above->bytes == bytes) return logs[at];
  if (form == Form::linear) {
    const double share = (bytes - sizes[at - 1].bytes) / (above->bytes - sizes[at - 1].bytes);
    return std::log(std::lerp(std::exp(logs[at - 1]), std::exp(logs[at]), share));
  }
  const double left = log_size(sizes[at - 1].bytes);
  const double width = log_size(above->bytes) - left;
  if (!(width > 0)) return logs[at];
  return logs[at - 1] + (logs[at] - logs[at - 1]) * (log_size(bytes) - left) / width;
}

/// Returns, for each interior size, the log of predicted over measured time; the prediction comes
/// from the curve of the other sizes.
std::vector<double> held_out_errors(const std::vector<CurveSample>& sizes, Form form) {
  std::vector<double> errors;
  for (std::size_t at = 1; at + 1 < sizes.size(); ++at) {
    std::vector<CurveSample> rest = sizes;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    errors.push_back(interpolated(rest, monotone(rest), sizes[at].bytes, form) -
                     std::log(sizes[at].time));
  }
  return errors;
}

std::vector<statistics::Point2> points_of(std::span<const CurveSample> samples) {
  std::vector<statistics::Point2> points;
  for (const CurveSample& at : samples) points.push_back({.x = at.bytes, .y = at.time});
  return points;
}

std::optional<Fitted> latency_of(std::span<const CurveSample> samples) {
  constexpr double flat = 1.5;  // a small size takes at most this many times the shortest time
  constexpr double widest_share = 0.1;  // largest share of the latency that may grow with size
  constexpr double span_of_plateau = 4;
  const auto end = std::ranges::find_if(
      samples, [&](const CurveSample& at) { return at.fitted > flat * samples.front().fitted; });
  auto plateau = samples.first(static_cast<std::size_t>(end - samples.begin()));
  const double span = std::max(plateau.back().bytes, 1.0) / std::max(plateau.front().bytes, 1.0);
  auto line = statistics::robust_line(points_of(plateau));
  if (plateau.size() < 2 || span < span_of_plateau) {
    plateau = samples.first(1);
    line =
        statistics::robust_line(points_of(samples.first(std::min<std::size_t>(samples.size(), 3))));
    const double slope = line ? line->slope : 0;
    const bool small =
        line ? slope * plateau[0].bytes <= widest_share * plateau[0].time : plateau[0].bytes == 0;
    if (!small) return std::nullopt;
  }
  // A slope below 0 is noise: more bytes do not take less time.
  const double slope = line ? std::max(line->slope, 0.0) : 0;
  // A size other than the first is left out if more than this share of its time grows with size:
  // an error of the slope would change the remaining times of all such sizes in one direction.
  constexpr double little = 0.2;
  std::vector<double> left;
  for (const CurveSample& at : plateau) {
    const double moving = slope * at.bytes;
    if (left.empty() || moving <= little * at.time) left.push_back(at.time - moving);
  }
  const auto middle = statistics::centre(left);
  return middle && middle->value > 0 ? middle : std::nullopt;
}

std::optional<Fitted> bandwidth_of(std::span<const CurveSample> samples, double latency) {
  constexpr double range = 64;          // sizes below largest / range are left out
  constexpr double bound_by_bytes = 4;  // a size is used if it takes at least this many latencies
  // If log(time) rises less steeply over log(size) than this, time is not proportional to size.
  constexpr double least_log_slope = 0.7;
  const double largest = samples.back().bytes;
  const auto begin = std::ranges::find_if(samples, [&](const CurveSample& at) {
    return at.bytes > 0 && at.bytes * range >= largest && at.fitted >= bound_by_bytes * latency;
  });
  const auto large = samples.subspan(static_cast<std::size_t>(begin - samples.begin()));
  if (large.size() == 1 && latency > 0) {
    return Fitted{.value = large.front().bytes / (large.front().time - latency)};
  }
  if (large.size() < 2) return std::nullopt;
  const double rise = std::log(large.back().fitted / large.front().fitted) /
                      (log_size(large.back().bytes) - log_size(large.front().bytes));
  const auto line = statistics::robust_line(points_of(large));
  if (rise < least_log_slope || !line || !(line->slope > 0)) return std::nullopt;
  // `fixed` is the part of the large sizes' times that does not depend on their bytes: the
  // intercept of the line through them. The latency takes its place if it is known (above 0) and
  // differs from the intercept by no more than noise.
  constexpr double within_noise = 0.05;  // as a share of the smallest size's time
  const double off = std::abs(line->intercept - latency);
  const bool is_latency = latency > 0 && off <= within_noise * large.front().time;
  const double fixed = is_latency ? latency : line->intercept;
  std::vector<double> logs;
  for (const CurveSample& at : large) {
    const double moving = at.time - fixed;
    if (moving > 0) logs.push_back(std::log(at.bytes / moving));
  }
  const auto middle = statistics::centre(logs);
  if (!middle) return std::nullopt;
  const auto back = [](double value) { return std::exp(value); };
  return Fitted{.value = back(middle->value),
                .lower = middle->lower ? std::optional{back(*middle->lower)} : std::nullopt,
                .upper = middle->upper ? std::optional{back(*middle->upper)} : std::nullopt};
}

std::optional<double> beyond(const CalibrationCurve& curve, double bytes) {
  const CurveSample& first = curve.samples.front();
  const CurveSample& last = curve.samples.back();
  if (bytes > last.bytes) {
    if (!curve.bandwidth) return std::nullopt;
    return last.fitted + (bytes - last.bytes) / curve.bandwidth->value;
  }
  const double fewer = curve.bandwidth ? (first.bytes - bytes) / curve.bandwidth->value : 0;
  // Without a known latency, time falls at most in proportion to size.
  const double floor = curve.latency ? std::min(curve.latency->value, first.fitted)
                                     : first.fitted * bytes / first.bytes;
  return std::max(first.fitted - fewer, floor);
}

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A line that is fitted to latencies: latency = intercept + slope * x, where x is log2 n or n for
/// n ranks. Each latency has the weight 1 / latency^2, so that relative errors count.
struct LawFit {
  statistics::Line line{};
  double error = 0;  ///< sum of squared relative residuals
};

LawFit fit_law(const CalibrationGrowth& growth, double (*law)(double ranks)) {
  std::vector<statistics::WeightedPoint> points;
  for (std::size_t i = 0; i < growth.members.size(); ++i) {
    const double latency = growth.latency[i];
    if (std::isnan(latency)) continue;
    points.push_back(
        {.x = law(growth.members[i]), .y = latency, .weight = 1 / (latency * latency)});
  }
  LawFit fit{.line = statistics::weighted_line(points)};
  for (const auto& [x, y, weight] : points) {
    const double off = (fit.line.intercept + fit.line.slope * x) / y - 1;
    fit.error += off * off;
  }
  return fit;
}

void add_law(CalibrationGrowth& growth) {
  const auto known =
      std::ranges::count_if(growth.latency, [](double latency) { return !std::isnan(latency); });
  if (known < 2) return;
  const LawFit by_log = fit_law(growth, [](double n) { return std::log2(n); });
  const LawFit by_count = fit_law(growth, [](double n) { return n; });
  const bool logarithmic = known < 3 || by_log.error <= by_count.error;
  if (known >= 3) growth.law = logarithmic ? "log2 n" : "n";
  const statistics::Line& line = logarithmic ? by_log.line : by_count.line;
  growth.base = line.intercept;
  growth.slope = line.slope;
}

}  // namespace

CalibrationCurve fit_curve(const std::vector<CurveSample>& samples) {
  CalibrationCurve curve{.samples = medians(samples)};
  std::vector<CurveSample>& sizes = curve.samples;
  if (sizes.empty()) return curve;
  const std::vector<double> logs = monotone(sizes);
  std::vector<double> errors = held_out_errors(sizes, Form::log);
  auto error = statistics::promised_error(errors);
  constexpr double clearly = 0.5;
  const std::vector<double> linear_errors = held_out_errors(sizes, Form::linear);
  if (const auto other = statistics::promised_error(linear_errors);
      other && *other <= clearly * *error) {
    errors = linear_errors;
    error = other;
    curve.form = linear_name;
  }
  if (error) curve.error = std::expm1(*error);
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    sizes[at].fitted = std::exp(logs[at]);
    if (at > 0 && at + 1 < sizes.size()) sizes[at].held_out = std::expm1(errors[at - 1]);
  }
  curve.latency = latency_of(sizes);
  curve.bandwidth = bandwidth_of(sizes, curve.latency ? curve.latency->value : 0);
  return curve;
}

std::optional<double> predict(const CalibrationCurve& curve, double bytes) {
  if (curve.samples.empty()) return std::nullopt;
  if (bytes < curve.samples.front().bytes || bytes > curve.samples.back().bytes) {
    return beyond(curve, bytes);
  }
  std::vector<double> logs;
  for (const CurveSample& at : curve.samples) logs.push_back(std::log(at.fitted));
  const Form form = curve.form == linear_name ? Form::linear : Form::log;
  return std::exp(interpolated(curve.samples, logs, bytes, form));
}

std::vector<CalibrationGrowth> growth_of(std::span<const CalibrationCurve> curves) {
  const auto kind = [](const CalibrationCurve& at) {
    return std::tie(at.op, at.dtype, at.link_class, at.implementation);
  };
  std::vector<CalibrationGrowth> all;
  for (const CalibrationCurve& first : curves) {
    std::vector<const CalibrationCurve*> like;
    for (const CalibrationCurve& at : curves) {
      if (kind(at) == kind(first)) like.push_back(&at);
    }
    if (like.front() != &first) continue;
    std::ranges::stable_sort(like, {}, &CalibrationCurve::members);
    const auto [last, end] = std::ranges::unique(like, {}, &CalibrationCurve::members);
    like.erase(last, end);
    if (like.size() < 2) continue;
    CalibrationGrowth growth;
    std::tie(growth.op, growth.dtype, growth.link_class, growth.implementation) = kind(first);
    for (const CalibrationCurve* const at : like) {
      growth.members.push_back(at->members);
      growth.latency.push_back(at->latency ? at->latency->value : unknown);
      growth.bandwidth.push_back(at->bandwidth ? at->bandwidth->value : unknown);
    }
    const double factor = growth.bandwidth.back() / growth.bandwidth.front();
    if (std::isfinite(factor)) growth.bandwidth_factor = factor;
    add_law(growth);
    all.push_back(std::move(growth));
  }
  return all;
}

}  // namespace isoscale::calibration
