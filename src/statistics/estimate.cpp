// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/estimate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "statistics/quantiles_and_fits.hpp"

namespace isoscale::statistics {
namespace {

constexpr std::size_t fewest_for_interval = 6;
constexpr std::size_t fewest_for_correlation = 8;

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[half];
  return sorted[half - 1] + (sorted[half] - sorted[half - 1]) / 2;
}

/// Returns the number of samples outside the interval at each end: the largest d such that the (d +
/// 1)th smallest and the (d + 1)th largest of n samples enclose the median with at least this
/// confidence. They enclose it with probability 1 - 2 P(Binomial(n, 1/2) <= d), for any
/// distribution of the samples. Absent if even the interval from the smallest to the largest sample
/// has less confidence.
std::optional<std::size_t> outside_interval(std::size_t n, double confidence) {
  const auto count = static_cast<double>(n);
  // Below n / 2 - 6 sqrt(n), 12 standard deviations from the mean, the tail is under 1e-30.
  const double start = std::max(0.0, std::floor(count / 2 - 6 * std::sqrt(count)));
  auto k = static_cast<std::size_t>(start);
  double probability = std::exp(std::lgamma(count + 1) - std::lgamma(start + 1) -
                                std::lgamma(count - start + 1) - count * std::log(2.0));
  double tail = 0;
  for (; k < n; ++k) {
    tail += probability;
    if (1 - 2 * tail < confidence) break;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  if (k == 0) return std::nullopt;
  return k - 1;
}

/// True if the lag-1 autocorrelation is above the 95% bound of independent samples. A correlation
/// below 0 does not count: it makes no interval too narrow.
bool correlated(std::span<const double> samples) {
  const auto lag1 = autocorrelation(samples);
  return lag1 && *lag1 > 1.96 / std::sqrt(static_cast<double>(samples.size()));
}

/// Returns the block length from which the means of neighbouring blocks of a first-order
/// autoregressive series with this lag-1 correlation r correlate by no more than 0.1. Means of
/// length L correlate by r (1 - r^L)^2 / (L (1 - r^2) - 2 r (1 - r^L)).
std::size_t first_block_length(double r) {
  constexpr double negligible = 0.1;
  r = std::min(r, 0.999);
  for (std::size_t length = 2;; length += std::max<std::size_t>(1, length / 8)) {
    const auto size = static_cast<double>(length);
    const double rest = 1 - std::pow(r, size);
    if (r * rest * rest <= negligible * (size * (1 - r * r) - 2 * r * rest)) return length;
  }
}

/// Returns `value`, or 1e-300 if it is too close to 0 to be a divisor.
double away_from_zero(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

/// Returns the continued fraction of the incomplete beta function (NIST DLMF 8.17.22), evaluated
/// from the front by Lentz's method; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr int most_terms = 10'000;
  constexpr double precision = 1e-15;
  double front = 1, back = 0, value = 1;
  for (int term = 1; term <= most_terms; ++term) {
    const double m = term / 2;  // NOLINT: the division rounds down on purpose
    const double numerator = term % 2 == 0
                                 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                 : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    back = 1 / away_from_zero(1 + numerator * back);
    front = away_from_zero(1 + numerator / front);
    value *= front * back;
    if (std::abs(front * back - 1) < precision) break;
  }
  return 1 / value;
}

/// Returns the regularised incomplete beta function I_x(a, b).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double scale = std::exp(a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) -
                                std::lgamma(a) - std::lgamma(b));
  if (x < (a + 1) / (a + b + 2)) return scale * beta_fraction(x, a, b) / a;
  return 1 - scale * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

bool all_finite(std::span<const double> samples) {
  return std::ranges::all_of(samples, [](double sample) { return std::isfinite(sample); });
}

std::optional<double> median(std::span<const double> samples) {
  if (samples.empty() || !all_finite(samples)) return std::nullopt;
  std::vector<double> sorted{samples.begin(), samples.end()};
  std::ranges::sort(sorted);
  return median_of_sorted(sorted);
}

std::optional<double> autocorrelation(std::span<const double> samples) {
  if (samples.size() < fewest_for_correlation || !all_finite(samples)) return std::nullopt;
  const auto [minimum, maximum] = std::ranges::minmax(samples);
  if (minimum == maximum) return std::nullopt;
  const double mean =
      std::reduce(samples.begin(), samples.end()) / static_cast<double>(samples.size());
  double variance = 0;
  double covariance = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double deviation = samples[i] - mean;
    variance += deviation * deviation;
    if (i > 0) covariance += deviation * (samples[i - 1] - mean);
  }
  if (!(variance > 0)) return std::nullopt;
  return covariance / variance;
}

std::vector<double> block_means(std::span<const double> samples, std::size_t length) {
  std::vector<double> means;
  means.reserve(samples.size() / length);
  for (std::size_t begin = 0; begin + length <= samples.size(); begin += length) {
    const auto block = samples.subspan(begin, length);
    means.push_back(std::reduce(block.begin(), block.end()) / static_cast<double>(length));
  }
  return means;
}

// The loop also ends if too few blocks are left to show a correlation; estimate() finds no interval
// if fewer than 6 are left.
std::size_t block_length(std::span<const double> samples) {
  if (!correlated(samples)) return 1;
  std::size_t length = first_block_length(*autocorrelation(samples));
  while (samples.size() / length >= fewest_for_correlation &&
         correlated(block_means(samples, length))) {
    length *= 2;
  }
  return length;
}

std::optional<Estimate> estimate(std::span<const double> samples, double confidence) {
  const auto of_all = median(samples);
  if (!of_all) return std::nullopt;
  const auto [minimum, maximum] = std::ranges::minmax(samples);
  Estimate result{.median = *of_all,
                  .minimum = minimum,
                  .maximum = maximum,
                  .samples = samples.size(),
                  .block = block_length(samples)};
  std::vector<double> sorted = block_means(samples, result.block);
  if (sorted.size() < fewest_for_interval) return result;
  std::ranges::sort(sorted);
  const auto outside = outside_interval(sorted.size(), confidence);
  if (!outside) return result;
  // The median must be that of the samples from which the interval is computed: the block means.
  result.median = median_of_sorted(sorted);
  result.lower = sorted[*outside];
  result.upper = sorted[sorted.size() - 1 - *outside];
  return result;
}

std::optional<double> relative_half_width(const Estimate& estimate) {
  if (!estimate.lower || !estimate.upper || !(estimate.median > 0)) return std::nullopt;
  return (*estimate.upper - *estimate.lower) / 2 / estimate.median;
}

std::optional<double> relative_half_width(std::span<const double> samples, double confidence) {
  const auto found = estimate(samples, confidence);
  return found ? relative_half_width(*found) : std::nullopt;
}

double nominal_confidence(int planned, double growth) {
  // The confidence for 2, 3, ..., 40 looks, each at 1.5 times the samples of the one before. The
  // probability that the chain stays within the boundary was integrated look by look (P. Armitage,
  // C. McPherson, B. Rowe: J. R. Stat. Soc. A 132, 1969) by Simpson's rule with 129 points, and the
  // boundary was found by bisection.
  constexpr std::array table{
      0.9681799, 0.9764890, 0.9813842, 0.9846309, 0.9869440, 0.9886742, 0.9900156, 0.9910847,
      0.9919557, 0.9926782, 0.9932867, 0.9938057, 0.9942533, 0.9946431, 0.9949853, 0.9952881,
      0.9955577, 0.9957993, 0.9960170, 0.9962140, 0.9963931, 0.9965567, 0.9967065, 0.9968444,
      0.9969715, 0.9970892, 0.9971983, 0.9972999, 0.9973945, 0.9974830, 0.9975659, 0.9976437,
      0.9977168, 0.9977856, 0.9978506, 0.9979120, 0.9979700, 0.9980251, 0.9980773};
  if (planned <= 1) return plain_confidence;
  const auto at = static_cast<std::size_t>(planned) - 2;
  if (growth == look_growth && at < table.size()) return table[at];
  return std::pow(plain_confidence, 1.0 / planned);
}

std::optional<Estimate> over_launches(std::span<const double> medians) {
  const bool usable = std::ranges::all_of(medians, [](double at) { return at > 0; });
  const auto middle = median(medians);
  if (!usable || !middle) return std::nullopt;
  Estimate estimate{.median = *middle,
                    .minimum = std::ranges::min(medians),
                    .maximum = std::ranges::max(medians),
                    .samples = medians.size()};
  constexpr std::size_t least_for_interval = 3;
  if (medians.size() < least_for_interval) return estimate;
  const auto n = static_cast<double>(medians.size());
  double mean = 0, squares = 0;
  for (const double median : medians) mean += std::log(median) / n;
  for (const double median : medians) squares += std::pow(std::log(median) - mean, 2);
  const double half = student_t(medians.size() - 1) * std::sqrt(squares / (n - 1) / n);
  estimate.lower = std::exp(mean - half);
  estimate.upper = std::exp(mean + half);
  return estimate;
}

double student_tail(double t, double freedom) {
  const double outside = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
  return t > 0 ? outside / 2 : 1 - outside / 2;
}

double student_quantile(double tail, double freedom) {
  if (tail > 0.5) return -student_quantile(1 - tail, freedom);
  double below = 0, above = 1;
  while (student_tail(above, freedom) > tail) above *= 2;
  constexpr int halvings = 100;
  for (int i = 0; i < halvings && above - below > 1e-12 * above; ++i) {
    const double middle = (below + above) / 2;
    (student_tail(middle, freedom) > tail ? below : above) = middle;
  }
  return (below + above) / 2;
}

std::optional<Mean> mean_of(std::span<const double> samples) {
  constexpr std::size_t least = 2;
  if (samples.size() < least || !all_finite(samples)) return std::nullopt;
  const auto n = static_cast<double>(samples.size());
  const double mean = std::reduce(samples.begin(), samples.end()) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return Mean{.value = mean, .variance = squares / (n - 1) / n, .freedom = n - 1};
}

Mean difference(const Mean& from, const Mean& to) {
  Mean result{.value = to.value - from.value,
              .variance = from.variance + to.variance,
              .freedom = from.freedom + to.freedom};
  if (result.variance > 0) {
    result.freedom =
        result.variance * result.variance /
        (from.variance * from.variance / from.freedom + to.variance * to.variance / to.freedom);
  }
  return result;
}

Mean exponential(const Mean& mean) {
  const double value = std::exp(mean.value);
  return {.value = value, .variance = value * value * mean.variance, .freedom = mean.freedom};
}

Located located(const Mean& mean) {
  const double half = student_quantile(beyond_one_end, mean.freedom) * std::sqrt(mean.variance);
  return {.value = mean.value, .lower = mean.value - half, .upper = mean.value + half};
}

double p_below(const Mean& mean, double bound) {
  const double off = mean.value - bound;
  if (!(mean.variance > 0)) return off < 0 ? 0 : 1;
  return 1 - student_tail(off / std::sqrt(mean.variance), mean.freedom);
}

double p_above(const Mean& mean, double bound) {
  const double off = mean.value - bound;
  if (!(mean.variance > 0)) return off > 0 ? 0 : 1;
  return student_tail(off / std::sqrt(mean.variance), mean.freedom);
}

std::vector<double> holm(std::span<const double> probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return probabilities[at]; });
  std::vector<double> adjusted(probabilities.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * probabilities[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace isoscale::statistics
