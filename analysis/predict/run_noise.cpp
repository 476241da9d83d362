// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_machine.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "results/records/measured_step_time.hpp"
#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"

namespace isoscale::analysis::predict {
namespace {

using Matrix = std::vector<std::vector<double>>;  ///< indices are [step][rank]

std::vector<double> medians_of_ranks(const Matrix& seconds) {
  std::vector<double> result;
  for (std::size_t rank = 0; rank < seconds.front().size(); ++rank) {
    std::vector<double> times;
    for (const auto& step : seconds) times.push_back(step[rank]);
    result.push_back(*statistics::median(times));
  }
  return result;
}

/// Returns each rank's time relative to its own median. The mean of this ratio over ranks is
/// subtracted in each step, since a delay that all ranks share makes no rank wait for another.
Matrix deviations_of(const Matrix& seconds, const std::vector<double>& medians) {
  Matrix result = seconds;
  for (auto& step : result) {
    for (std::size_t rank = 0; rank < step.size(); ++rank) step[rank] /= medians[rank];
    const double mean =
        std::accumulate(step.begin(), step.end(), 0.0) / static_cast<double>(step.size());
    for (double& at : step) at -= mean;
  }
  return result;
}

using RanksByNode = std::map<int, std::vector<std::size_t>>;

RanksByNode ranks_by_node(std::size_t ranks, const simulate::Layout& layout) {
  RanksByNode result;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    result[layout.node_of_rank.at(rank)].push_back(rank);
  }
  return result;
}

/// The variances between the ranks of a node and between nodes, by analysis of variance.
struct Components {
  double rank = 0, node = 0;
};

Components components_of(const Matrix& deviations, const simulate::Layout& layout) {
  const std::size_t ranks = deviations.front().size();
  const RanksByNode ranks_of_node = ranks_by_node(ranks, layout);
  const std::size_t nodes = ranks_of_node.size();
  double within = 0, between = 0;
  for (const auto& step : deviations) {
    for (const auto& [node, members] : ranks_of_node) {
      double mean = 0;
      for (const std::size_t rank : members) mean += step[rank];
      mean /= static_cast<double>(members.size());
      // Each step's mean over all ranks is 0, so nothing is subtracted from the mean of a node.
      between += static_cast<double>(members.size()) * mean * mean;
      for (const std::size_t rank : members) within += (step[rank] - mean) * (step[rank] - mean);
    }
  }
  const auto steps = static_cast<double>(deviations.size());
  const auto per_node = static_cast<double>(ranks) / static_cast<double>(nodes);
  const bool apart = nodes > 1 && ranks > nodes;
  if (!apart) return {.rank = (within + between) / (steps * static_cast<double>(ranks - 1))};
  const double mean_within = within / (steps * static_cast<double>(ranks - nodes));
  const double mean_between = between / (steps * static_cast<double>(nodes - 1));
  return {.rank = mean_within, .node = std::max(0.0, (mean_between - mean_within) / per_node)};
}

/// Returns the deviation of each rank and step from the mean of its node, or from the mean of all
/// ranks if each node has only one. A sample deviates less from its own mean than from the true
/// mean, so the deviations are scaled up by this difference.
std::vector<double> draws_of(const Matrix& deviations, const simulate::Layout& layout) {
  const std::size_t ranks = deviations.front().size();
  RanksByNode groups = ranks_by_node(ranks, layout);
  if (groups.size() == ranks) groups = ranks_by_node(ranks, {std::vector<int>(ranks)});
  std::vector<double> draws;
  for (const auto& step : deviations) {
    for (const auto& [node, members] : groups) {
      if (members.size() < 2) continue;
      const auto count = static_cast<double>(members.size());
      double mean = 0;
      for (const std::size_t rank : members) mean += step[rank] / count;
      for (const std::size_t rank : members) {
        draws.push_back((step[rank] - mean) * std::sqrt(count / (count - 1)));
      }
    }
  }
  return draws;
}

/// Returns each rank's time relative to the median of the ranks with the same program, reduced
/// towards 1 by the part that chance explains. Empty if ranks with the same program differ no more
/// than by chance, and if no two ranks have the same program. `variance` is that of a rank's
/// relative time in one step.
std::vector<double> standing_of(const results::PointData& point, const std::vector<double>& medians,
                                double variance, std::size_t steps) {
  // Ranks differ by more than chance if the F statistic is above this value.
  constexpr double certain = 3;
  constexpr double of_median = 1.57;  // variance of a median over that of a mean: pi / 2
  std::map<std::uint32_t, std::vector<double>> alike;
  for (std::size_t rank = 0; rank < medians.size(); ++rank) {
    alike[point.outline.outline_of_rank.at(rank)].push_back(medians[rank]);
  }
  std::vector<double> factors;
  double squares = 0, degrees = 0;
  for (std::size_t rank = 0; rank < medians.size(); ++rank) {
    const std::vector<double>& same = alike[point.outline.outline_of_rank.at(rank)];
    factors.push_back(medians[rank] / *statistics::median(same));
    if (same.size() < 2) continue;
    const auto count = static_cast<double>(same.size());
    squares += (factors.back() - 1) * (factors.back() - 1);
    degrees += (count - 1) / count;
  }
  if (degrees < 0.5) return {};
  const double of_chance = of_median * variance / static_cast<double>(steps);
  const double found = squares / degrees;
  if (!(found > certain * of_chance) || found < 1e-6) return {};
  const double kept = (found - of_chance) / found;
  for (double& factor : factors) factor = 1 + kept * (factor - 1);
  return factors;
}

/// Returns the ratio of the relative variance of a step's compute time to that of a single op's
/// time, if the ops deviate independently. It is at most 1, since the deviations of many ops
/// average out, and 0 if no traced step counts.
double share_of_ops(const results::PointData& point) {
  double sum = 0, squares = 0;
  for (const timeline::Timeline& step : point.traces) {
    if (step.ranks.empty() || !breakdown::step_counts(point, step)) continue;
    const timeline::StepTrace& trace = step.ranks.front();
    const program::Outline& outline = point.outline.of(trace.rank);
    for (const timeline::Span& span : trace.spans) {
      if (program::communicates(outline.ops.at(span.op).kind)) continue;
      const double time = units::to_seconds(span.end - span.start).value();
      sum += time;
      squares += time * time;
    }
    break;
  }
  return sum > 0 ? squares / (sum * sum) : 0;
}

/// Returns the fields that, with the mesh, identify the same point in several runs.
auto identity(const results::PointData& point) {
  return std::tie(point.workload, point.model, point.dtype, point.ranks, point.scaling,
                  point.placement, point.options, point.model_shape);
}

/// Returns the compute seconds (GEMMs, other compute and copies) of each rank in each traced step
/// that counts. A step is left out if they are not known for all ranks.
Matrix compute_seconds(const results::PointData& point) {
  Matrix result;
  const auto is_time = [](double at) { return std::isfinite(at) && at > 0; };
  for (const results::OpSums& sums : point.op_sums) {
    if (!breakdown::step_counts(point, sums.step)) continue;
    std::vector<double> step = breakdown::busy_seconds(sums, static_cast<std::size_t>(point.ranks));
    if (!step.empty() && std::ranges::all_of(step, is_time)) result.push_back(std::move(step));
  }
  return result;
}

}  // namespace

simulate::Noise noise_of(const results::PointData& point, const simulate::Layout& layout,
                         double of_op) {
  constexpr std::size_t least_steps = 3, least_draws = 100, most_draws = 4096;
  simulate::Noise noise;
  noise.op = of_op;
  noise.launch = assumed_launch_deviation;
  const Matrix seconds = compute_seconds(point);
  if (seconds.size() < least_steps || point.ranks < 2) return noise;
  const std::vector<double> medians = medians_of_ranks(seconds);
  const Matrix deviations = deviations_of(seconds, medians);
  const Components parts = components_of(deviations, layout);
  noise.standing = standing_of(point, medians, parts.rank + parts.node, seconds.size());
  noise.node = std::sqrt(parts.node);
  const double of_ops = of_op * of_op * share_of_ops(point);
  noise.rank = std::sqrt(std::max(0.0, parts.rank - of_ops));
  std::vector<double> draws = draws_of(deviations, layout);
  if (draws.size() < least_draws || !(noise.rank > 0)) return noise;
  // Simulations draw the noise of single ops separately, so the draws are reduced to exclude it.
  for (double& at : draws) at *= noise.rank / std::sqrt(parts.rank);
  std::ranges::sort(draws);
  for (std::size_t i = 0; draws.size() > most_draws && i < most_draws; ++i) {
    draws[i] = draws[i * (draws.size() - 1) / (most_draws - 1)];
  }
  draws.resize(std::min(draws.size(), most_draws));
  noise.draws = std::move(draws);
  return noise;
}

double median_step(const results::PointData& point) {
  const std::optional<statistics::Estimate> time = results::step_time(point);
  return time ? time->median : 0;
}

double step_deviation(const results::PointData& point) {
  const double middle = median_step(point);
  return middle > 0 ? statistics::scaled_deviation(results::untraced_times(point)) / middle : 0;
}

double launch_deviation(std::span<const results::RunData> runs) {
  double squares = 0, degrees = 0;
  for (std::size_t first = 0; first < runs.size(); ++first) {
    for (const results::PointData* const point : stepped_points(runs[first])) {
      std::vector<double> logs;
      bool seen = false;
      for (std::size_t other = 0; other < runs.size() && !seen; ++other) {
        for (const results::PointData* const at : stepped_points(runs[other])) {
          const bool same = identity(*at) == identity(*point) && at->mesh == point->mesh;
          if (!same || !(median_step(*at) > 0)) continue;
          // If an earlier run has this point, it was already counted with that run.
          seen = other < first;
          logs.push_back(std::log(median_step(*at)));
          break;
        }
      }
      if (seen || logs.size() < 2) continue;
      double mean = 0;
      for (const double at : logs) mean += at / static_cast<double>(logs.size());
      for (const double at : logs) squares += (at - mean) * (at - mean);
      degrees += static_cast<double>(logs.size() - 1);
    }
  }
  return degrees > 0 ? std::sqrt(squares / degrees) : assumed_launch_deviation;
}

}  // namespace isoscale::analysis::predict
