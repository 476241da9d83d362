// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/text.hpp"
#include "results/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;
using results::PointData;

constexpr double cell_digits = 1e4;  ///< a cell is a colour: a hundredth of a percent is enough

struct NodeRow {
  std::string host{};
  std::vector<int> ranks{};  ///< ranks of the point, in the order of MPI's ranks
};

std::vector<NodeRow> rows_of_ranks(std::span<const results::RankFacts> facts,
                                   const PointData& point) {
  std::vector<NodeRow> rows;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const results::RankFacts* const of_rank = facts_of(facts, point, rank);
    rows.push_back({.host = of_rank != nullptr ? of_rank->host : "", .ranks = {rank}});
  }
  std::ranges::stable_sort(
      rows, {}, [&point](const NodeRow& row) { return world_rank(point, row.ranks.front()); });
  std::ranges::stable_sort(
      rows, [](const NodeRow& a, const NodeRow& b) { return before_naturally(a.host, b.host); });
  return rows;
}

/// Merges the rows of each host if there are too many, and then those of neighbouring hosts.
std::vector<NodeRow> together(std::vector<NodeRow> rows, std::size_t most) {
  if (rows.size() <= most) return rows;
  std::vector<NodeRow> of_host;
  for (NodeRow& row : rows) {
    if (of_host.empty() || of_host.back().host != row.host) {
      of_host.push_back(std::move(row));
    } else {
      of_host.back().ranks.push_back(row.ranks.front());
    }
  }
  if (of_host.size() <= most) return of_host;
  std::vector<NodeRow> result(most);
  for (std::size_t i = 0; i < of_host.size(); ++i) {
    NodeRow& row = result[i * most / of_host.size()];
    const bool is_first = row.ranks.empty();
    row.host = is_first ? of_host[i].host
                        : row.host.substr(0, row.host.find(" to ")) + " to " + of_host[i].host;
    row.ranks.insert(row.ranks.end(), of_host[i].ranks.begin(), of_host[i].ranks.end());
  }
  return result;
}

std::vector<std::size_t> measured_steps(const PointData& point) {
  std::vector<std::size_t> steps;
  for (std::size_t step = 0; step < point.step_times.size(); ++step) {
    if (kind_of_step(point, step) == StepKind::measured && time_of_step(point, step) &&
        point.step_times[step].size() == static_cast<std::size_t>(point.ranks)) {
      steps.push_back(step);
    }
  }
  return steps;
}

/// Returns the median step times by rank; empty where nothing was measured.
std::vector<double> median_of_rank(const PointData& point, const std::vector<std::size_t>& steps) {
  std::vector<double> medians;
  if (steps.empty()) return medians;
  std::vector<double> times(steps.size());
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(point.ranks); ++rank) {
    for (std::size_t i = 0; i < steps.size(); ++i) times[i] = point.step_times[steps[i]][rank];
    medians.push_back(statistics::median(times).value_or(0));
  }
  return medians;
}

/// Returns the mean over those ranks of a row that have a value; absent without any.
template <class ValueOf>
std::optional<double> mean_over(const NodeRow& row, const ValueOf& value_of) {
  double sum = 0;
  int count = 0;
  for (const int rank : row.ranks) {
    if (const std::optional<double> value = value_of(rank)) {
      sum += *value;
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

Json cells(const PointData& point, const std::vector<NodeRow>& rows,
           const std::vector<std::size_t>& steps, std::size_t most) {
  if (point.ranks < 2 || steps.empty()) return {};
  const std::size_t every = std::max<std::size_t>(1, (steps.size() + most - 1) / most);
  const std::size_t columns = (steps.size() + every - 1) / every;
  Json first = Json::array();
  std::vector<std::vector<double>> furthest(rows.size(), std::vector<double>(columns, 0));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<double>& times = point.step_times[steps[i]];
    const double typical = statistics::median(times).value_or(0);
    if (i % every == 0) first.push_back(steps[i]);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      double& cell = furthest[row][i / every];
      for (const int rank : rows[row].ranks) {
        const double off = times[static_cast<std::size_t>(rank)] / typical - 1;
        if (std::abs(off) > std::abs(cell)) cell = off;
      }
    }
  }
  Json time = Json::array();
  for (const std::vector<double>& of_row : furthest) {
    Json line = Json::array();
    for (const double off : of_row) {
      // A large deviation may be hundreds of times the median, so it is rounded to significant
      // digits.
      line.push_back(drawn(std::abs(off) < 1 ? std::round(off * cell_digits) / cell_digits : off));
    }
    time.push_back(std::move(line));
  }
  return {{"first", first}, {"every", every}, {"time", time}};
}

/// Adds the times that come from traces: the seconds of each category, and how long others waited
/// for each rank.
void add_traced(const PointReport& point, const std::vector<NodeRow>& rows, Json& map) {
  const BreakdownResult& breakdown = point.breakdown;
  std::map<int, const Breakdown*> of_rank;
  for (std::size_t i = 0; i < std::min(breakdown.ranks.size(), breakdown.of_rank.size()); ++i) {
    of_rank[breakdown.ranks[i]] = &breakdown.of_rank[i];
  }
  for (const Category& category : categories()) {
    Json column = Json::array();
    const bool known = is_known(breakdown, category.seconds);
    for (const NodeRow& row : rows) {
      column.push_back(drawn(mean_over(row, [&](int rank) -> std::optional<double> {
        const auto found = of_rank.find(rank);
        if (!known || found == of_rank.end()) return std::nullopt;
        return found->second->*category.seconds;
      })));
    }
    map[std::string{category.name}] = std::move(column);
  }
  Json caused = Json::array();
  for (const NodeRow& row : rows) {
    caused.push_back(drawn(mean_over(row, [&](int rank) -> std::optional<double> {
      const auto at = static_cast<std::size_t>(rank);
      const bool known = breakdown.wait_known && of_rank.contains(rank);
      if (!known || at >= breakdown.caused.of_rank.size()) return std::nullopt;
      return breakdown.caused.of_rank[at];
    })));
  }
  map["caused_wait"] = std::move(caused);
}

}  // namespace

Json rank_map(std::span<const results::RankFacts> facts, const PointReport& point,
              const DetailLimits& limits) {
  const PointData& data = *point.data;
  const std::vector<NodeRow> rows = together(rows_of_ranks(facts, data), limits.rows);
  const std::vector<std::size_t> steps = measured_steps(data);
  const std::vector<double> medians = median_of_rank(data, steps);
  Json hosts = Json::array(), rank = Json::array(), count = Json::array(), host = Json::array();
  Json step = Json::array(), world = Json::array();
  std::map<std::string, std::size_t> place;
  for (const NodeRow& row : rows) {
    const auto [at, is_new] = place.try_emplace(row.host, place.size());
    if (is_new) hosts.push_back(row.host);
    rank.push_back(row.ranks.front());
    world.push_back(world_rank(data, row.ranks.front()));
    count.push_back(row.ranks.size());
    host.push_back(at->second);
    std::optional<double> largest;
    for (const int of_row : row.ranks) {
      if (medians.empty()) break;
      const double median = medians[static_cast<std::size_t>(of_row)];
      largest = std::max(largest.value_or(median), median);
    }
    step.push_back(drawn(largest));
  }
  Json map{{"hosts", hosts}, {"rank", rank}, {"world_rank", world},
           {"count", count}, {"host", host}, {"step", step}};
  add_traced(point, rows, map);
  map["cells"] = cells(data, rows, steps, limits.columns);
  return map;
}

}  // namespace isoscale::analysis
