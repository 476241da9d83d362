// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analysis/efficiency/stragglers.hpp"
#include "results/point_facts.hpp"
#include "statistics/estimate.hpp"
#include "statistics/t_test.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// One sample of y = k_0 u_0 + k_1 u_1 + ..., divided by the quantity that its error is
/// proportional to.
template <std::size_t n>
struct LinearSample {
  std::array<double, n> u{};
  double y = 0;
};

template <std::size_t n>
using SquareMatrix = std::array<std::array<double, n>, n>;

template <std::size_t n>
struct LinearFit {
  std::array<double, n> k{};
  SquareMatrix<n> covariance{};  ///< of k
  std::size_t freedom = 0;       ///< degrees of freedom of the residuals
};

/// Returns the inverse of a symmetric positive definite matrix by Gauss-Jordan elimination; absent
/// where a column depends on the others.
template <std::size_t n>
[[nodiscard]] std::optional<SquareMatrix<n>> inverse(SquareMatrix<n> matrix) {
  constexpr double independent = 1e-12;  // rest of a column over the column: less is dependent
  const auto whole = matrix;
  SquareMatrix<n> result{};
  for (std::size_t i = 0; i < n; ++i) result[i][i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(matrix[i][i] > independent * whole[i][i])) return std::nullopt;
    const double pivot = matrix[i][i];
    for (std::size_t j = 0; j < n; ++j) {
      matrix[i][j] /= pivot;
      result[i][j] /= pivot;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row][i];
      for (std::size_t j = 0; row != i && j < n; ++j) {
        matrix[row][j] -= factor * matrix[i][j];
        result[row][j] -= factor * result[i][j];
      }
    }
  }
  return result;
}

/// Returns an ordinary least-squares fit with the variance of its residuals. Absent unless there
/// are more samples than coefficients, and where the samples do not determine all coefficients.
template <std::size_t n>
[[nodiscard]] std::optional<LinearFit<n>> least_squares(std::span<const LinearSample<n>> samples) {
  if (samples.size() <= n) return std::nullopt;
  SquareMatrix<n> normal{};
  std::array<double, n> right{};
  for (const auto& [u, y] : samples) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) normal[i][j] += u[i] * u[j];
      right[i] += u[i] * y;
    }
  }
  const auto inverted = inverse<n>(normal);
  if (!inverted) return std::nullopt;
  LinearFit<n> result{.freedom = samples.size() - n};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) result.k[i] += (*inverted)[i][j] * right[j];
  }
  double squares = 0;
  for (const auto& [u, y] : samples) {
    const double error = y - std::inner_product(u.begin(), u.end(), result.k.begin(), 0.0);
    squares += error * error;
  }
  result.covariance = *inverted;
  for (auto& row : result.covariance) {
    for (double& value : row) value *= squares / static_cast<double>(result.freedom);
  }
  return result;
}

constexpr std::size_t least_for_line = 3;  ///< points beyond the baseline
constexpr std::size_t least_for_usl = 5;   ///< points beyond the baseline

bool is_known(const ScalingPoint& at) { return at.p > 0 && at.speedup > 0; }

/// Returns k_i / k_0 with its interval; errors are propagated to first order.
template <std::size_t n>
statistics::Located over_first(const LinearFit<n>& fit, std::size_t i) {
  const double ratio = fit.k[i] / fit.k[0];
  const auto& c = fit.covariance;
  const double variance =
      std::max(0.0, c[i][i] - 2 * ratio * c[0][i] + ratio * ratio * c[0][0]) / fit.k[0] / fit.k[0];
  const double half = statistics::student_t(fit.freedom) * std::sqrt(variance);
  return {.value = ratio, .lower = ratio - half, .upper = ratio + half};
}

/// Returns the points that a law is fitted to as samples: the baseline and the points beyond it.
/// Empty where fewer than `least` are beyond it.
template <std::size_t n, class ToSample>
std::vector<LinearSample<n>> samples_of(std::span<const ScalingPoint> points, std::size_t least,
                                        const ToSample& to_sample) {
  std::vector<LinearSample<n>> samples;
  std::size_t beyond = 0;
  for (const ScalingPoint& at : points) {
    if (!is_known(at) || at.p < 1) continue;
    beyond += at.p > 1 ? 1 : 0;
    samples.push_back(to_sample(at));
  }
  if (beyond < least) samples.clear();
  return samples;
}

std::optional<statistics::Located> serial_fraction(std::span<const LinearSample<2>> samples) {
  const auto line = least_squares<2>(samples);
  if (!line || !(line->k[0] > 0)) return std::nullopt;
  const statistics::Located fraction = over_first(*line, 1);
  // A fraction above 1 means slower than the baseline, and an interval of width 1 or more carries
  // no information.
  constexpr double rounding = 1e-9;
  const bool explains = fraction.value <= 1 + rounding && *fraction.upper - *fraction.lower < 1;
  return explains ? std::optional{fraction} : std::nullopt;
}

}  // namespace

std::optional<statistics::Located> karp_flatt(const ScalingPoint& point) {
  if (!(point.p > 1) || !(point.speedup > 0)) return std::nullopt;
  const auto fraction = [&point](double speedup) {
    return (1 / speedup - 1 / point.p) / (1 - 1 / point.p);
  };
  statistics::Located result{
      .value = fraction(point.speedup), .lower = std::nullopt, .upper = std::nullopt};
  if (point.lower && point.upper && *point.lower > 0) {
    result.lower = fraction(*point.upper);
    result.upper = fraction(*point.lower);
  }
  return result;
}

std::optional<statistics::Located> amdahl(std::span<const ScalingPoint> points) {
  return serial_fraction(samples_of<2>(points, least_for_line, [](const ScalingPoint& at) {
    const double weight = at.speedup / at.p;
    return LinearSample<2>{.u = {weight, (at.p - 1) * weight}, .y = 1};
  }));
}

std::optional<statistics::Located> gustafson(std::span<const ScalingPoint> points) {
  return serial_fraction(samples_of<2>(points, least_for_line, [](const ScalingPoint& at) {
    return LinearSample<2>{.u = {1, 1 / at.p - 1}, .y = at.speedup / at.p};
  }));
}

std::optional<Usl> usl(std::span<const ScalingPoint> points) {
  const auto law = least_squares<
      3>(samples_of<3>(points, least_for_usl, [](const ScalingPoint& at) {
    const double weight = at.speedup / at.p;
    return LinearSample<3>{.u = {weight, (at.p - 1) * weight, at.p * (at.p - 1) * weight}, .y = 1};
  }));
  if (!law || !(law->k[0] > 0)) return std::nullopt;
  Usl result{
      .contention = over_first(*law, 1), .coherency = over_first(*law, 2), .peak = std::nullopt};
  const double a = result.contention.value;
  // There is no peak if the coherency may be 0, nor if the contention is certainly negative (it
  // speeds up).
  if (*result.coherency.lower > 0 && a < 1 && *result.contention.upper >= 0) {
    result.peak = std::sqrt((1 - a) / result.coherency.value);
  }
  return result;
}

namespace {

constexpr double visible = 0.01;           ///< share of the step: less waiting is not reported
constexpr double one_to_blame = 0.5;       ///< share of the waiting that ranks cause
constexpr double noticeably_more = 0.005;  ///< share of the step that makes a rank late

/// Returns "rank 3 (node1, NVIDIA H200 00000000:1B:00.0)".
std::string place_of(const results::RunData& run, const results::PointData& point, int rank) {
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  const std::string name = fmt::format("rank {}", world_rank(point, rank));
  if (facts == nullptr) return name;
  std::string device;
  for (const char* const key : {"gpu_name", "gpu_pci"}) {
    const auto found = facts->text.find(key);
    if (found != facts->text.end()) device += (device.empty() ? "" : " ") + found->second;
  }
  const bool both = !facts->host.empty() && !device.empty();
  const std::string where = facts->host + (both ? ", " : "") + device;
  return where.empty() ? name : fmt::format("{} ({})", name, where);
}

std::string places_of(const results::RunData& run, const results::PointData& point,
                      std::vector<int> ranks) {
  constexpr std::size_t most = 4;
  std::ranges::sort(ranks, {}, [&point](int rank) { return world_rank(point, rank); });
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + place_of(run, point, ranks[i]);
  }
  if (ranks.size() > most) text += fmt::format(" and {} more", ranks.size() - most);
  return text;
}

NamedCause describe(const results::RunData& run, const results::PointData& point,
                    const SlowRank& slow) {
  std::string text = fmt::format("{} is slow in its own GEMMs: they take {:.2f} times as long",
                                 place_of(run, point, slow.rank), slow.factor);
  text += slow.by_rate ? " a FLOP as those of all ranks" : " as those of like ranks";
  if (slow.lower && slow.upper) text += fmt::format(" ({:.2f}-{:.2f})", *slow.lower, *slow.upper);
  text += slow.since ? fmt::format(", since step {}", *slow.since) : ", all along";
  return {.kind = "slow rank", .ranks = {slow.rank}, .size = slow.factor, .text = text};
}

void add_links(const results::RunData& run, const results::PointData& point,
               const TracedSteps& traced, std::vector<NamedCause>& result) {
  const std::vector<SlowLink> links = slow_links(point, traced);
  for (const SlowLink& link : links) {
    result.push_back({.kind = "slow link",
                      .ranks = link.members,
                      .size = link.factor,
                      .text = fmt::format(
                          "slow link: {} on {} takes {:.2f} times as long a byte as elsewhere "
                          "among {}",
                          link.op, link.axes, link.factor, places_of(run, point, link.members))});
  }
  if (const std::vector<int> shared = shared_by(links); !shared.empty()) {
    result.push_back({.kind = "slow link",
                      .ranks = shared,
                      .size = links.front().factor,
                      .text = "slow links share " + places_of(run, point, shared)});
  }
}

/// Returns the category in which a rank exceeds other ranks with the same program most, "gaps
/// before its ops"; "" if there is none, or if no other rank has its program.
std::string reason_of(const results::PointData& point, const BreakdownResult& breakdown, int rank) {
  struct Part {
    double Breakdown::*seconds;
    const char* text;
  };
  constexpr Part parts[]{{&Breakdown::compute, "more computation"},
                         {&Breakdown::copies, "more copies"},
                         {&Breakdown::gap, "gaps before its ops"},
                         {&Breakdown::other, "time that nothing explains"}};
  const auto program_of = [&point](int at) {
    return point.outline.outline_of_rank[static_cast<std::size_t>(at)];
  };
  const char* reason = "";
  double most = noticeably_more * breakdown.mean->step;
  for (const Part& part : parts) {
    std::vector<double> others;
    double mine = 0;
    for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
      const double seconds = breakdown.of_rank[i].*part.seconds;
      if (breakdown.ranks[i] == rank) {
        mine = seconds;
      } else if (program_of(breakdown.ranks[i]) == program_of(rank)) {
        others.push_back(seconds);
      }
    }
    const auto usual = statistics::median(others);
    if (!usual || mine - *usual <= most) continue;
    most = mine - *usual;
    reason = part.text;
  }
  return reason;
}

/// Returns the rank that causes most of the waiting, if there is one.
std::optional<int> most_awaited(const BreakdownResult& breakdown) {
  const auto& caused = breakdown.caused.of_rank;
  if (caused.size() < 2) return std::nullopt;
  const auto most = std::ranges::max_element(caused);
  const double all = std::reduce(caused.begin(), caused.end());
  if (!(*most > one_to_blame * all)) return std::nullopt;
  return static_cast<int>(most - caused.begin());
}

/// Returns "mostly for rank 3 (node1), last in 4 of 4 traced steps"; "" where no rank stands out.
std::string awaited_text(const results::RunData& run, const results::PointData& point,
                         const BreakdownResult& breakdown) {
  const auto late = most_awaited(breakdown);
  if (!late) return "";
  return fmt::format("mostly for {}, last in {} of {} traced steps", place_of(run, point, *late),
                     breakdown.caused.steps_as_last[static_cast<std::size_t>(*late)],
                     breakdown.steps);
}

NamedCause imbalance_of(const results::RunData& run, const results::PointData& point,
                        const BreakdownResult& breakdown, double share) {
  NamedCause cause{.kind = "imbalance", .ranks = {}, .size = share, .text = {}};
  cause.text =
      fmt::format("imbalance: {} of the step is waiting for ranks that are consistently late",
                  units::format_percent(share));
  const auto late = most_awaited(breakdown);
  if (!late) return cause;
  cause.ranks = {*late};
  cause.text +=
      fmt::format(", mostly for {}, last in {} of {} traced steps", place_of(run, point, *late),
                  breakdown.caused.steps_as_last[static_cast<std::size_t>(*late)], breakdown.steps);
  const std::string reason = reason_of(point, breakdown, *late);
  if (!reason.empty()) cause.text += ": " + reason;
  return cause;
}

/// Adds the waiting as one cause if too few steps were traced to tell imbalance from noise.
void add_undivided(const results::RunData& run, const results::PointData& point,
                   const BreakdownResult& breakdown, std::vector<NamedCause>& result) {
  const double share = breakdown.mean->wait / breakdown.mean->step;
  if (!(share > visible)) return;
  const std::string whom = awaited_text(run, point, breakdown);
  result.push_back(
      {.kind = "waiting",
       .ranks = whom.empty() ? std::vector<int>{} : std::vector<int>{*most_awaited(breakdown)},
       .size = share,
       .text = fmt::format("waiting: {} of the step is for late ranks{}{}",
                           units::format_percent(share), whom.empty() ? "" : ", ", whom)});
}

void add_waits(const results::RunData& run, const results::PointData& point,
               const BreakdownResult& breakdown, std::vector<NamedCause>& result) {
  if (!breakdown.mean || !breakdown.wait_known) return;
  if (!breakdown.waits) return add_undivided(run, point, breakdown, result);
  const double imbalance = breakdown.waits->imbalance / breakdown.mean->step;
  const double noise = breakdown.waits->noise / breakdown.mean->step;
  if (imbalance > visible) result.push_back(imbalance_of(run, point, breakdown, imbalance));
  if (noise > visible) {
    result.push_back({.kind = "noise",
                      .ranks = {},
                      .size = noise,
                      .text = fmt::format(
                          "noise: {} of the step is waiting for ranks that are occasionally late",
                          units::format_percent(noise))});
  }
}

}  // namespace

std::vector<NamedCause> named_causes(const results::RunData& run, const results::PointData& point,
                                     const TracedSteps& traced, const BreakdownResult& breakdown) {
  std::vector<NamedCause> result;
  // A rank that shares a core is slow for that reason, so no other cause is named.
  if (std::ranges::find(point.labels, "oversubscribed") == point.labels.end()) {
    for (const SlowRank& slow : slow_ranks(point)) result.push_back(describe(run, point, slow));
    add_links(run, point, traced, result);
  }
  add_waits(run, point, breakdown, result);
  return result;
}

}  // namespace isoscale::analysis
