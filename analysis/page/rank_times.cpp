// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/table_cells.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;
using results::PointData;

/// Returns all ranks of the point, sorted by host and then by MPI rank.
std::vector<int> by_host(std::span<const results::RankFacts> facts, const PointData& point) {
  std::vector<int> ranks(static_cast<std::size_t>(point.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<std::string> hosts;
  for (const int rank : ranks) hosts.push_back(host_of(facts, point, rank));
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return world_rank(point, rank); });
  std::ranges::stable_sort(ranks, render::before_naturally, [&](int rank) -> const std::string& {
    return hosts[static_cast<std::size_t>(rank)];
  });
  return ranks;
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

/// Returns the median step time of each rank over `steps`, in seconds; empty if `steps` is empty.
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

/// One value for each rank of the point, usually seconds; NaN if it is not known.
using OfRank = std::vector<double>;

/// Returns value_of(i) for the i-th traced rank of the breakdown, and NaN for other ranks.
template <class ValueOf>
OfRank traced(const PointReport& point, const ValueOf& value_of) {
  OfRank values(static_cast<std::size_t>(point.data->ranks),
                std::numeric_limits<double>::quiet_NaN());
  const breakdown::BreakdownResult& breakdown = point.breakdown;
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    values[static_cast<std::size_t>(breakdown.ranks[i])] = value_of(i);
  }
  return values;
}

/// Returns the seconds that other ranks waited for each rank; NaN if they are not known.
OfRank caused_waits(const PointReport& point) {
  const breakdown::BreakdownResult& breakdown = point.breakdown;
  return traced(point, [&](std::size_t i) {
    if (!breakdown.wait_known) return std::numeric_limits<double>::quiet_NaN();
    return breakdown.caused.of_rank.at(static_cast<std::size_t>(breakdown.ranks[i]));
  });
}

/// Reduces `order` to at most `most` ranks: the first; up to `most` / 4 each with the longest
/// steps, the longest computation, and the longest waits for them; and others, spread evenly.
void sample(const PointReport& point, const OfRank& steps, std::size_t most,
            std::vector<int>& order) {
  if (order.size() <= most) return;
  std::set<int> shown{order.front()};
  const auto add_largest = [&](const OfRank& values) {
    const auto value = [&](int rank) { return values[static_cast<std::size_t>(rank)]; };
    std::vector<int> known = order;
    std::erase_if(known, [&](int rank) { return !(value(rank) > 0); });
    std::ranges::stable_sort(known, std::ranges::greater{}, value);
    known.resize(std::min(known.size(), most / 4));
    shown.insert(known.begin(), known.end());
  };
  if (!steps.empty()) add_largest(steps);
  add_largest(traced(point, [&](std::size_t i) { return point.breakdown.of_rank[i].compute; }));
  add_largest(caused_waits(point));
  std::vector<int> others = order;
  std::erase_if(others, [&](int rank) { return shown.contains(rank); });
  const std::size_t free = most - shown.size();
  for (std::size_t i = 0; i < free; ++i) shown.insert(others[i * others.size() / free]);
  std::erase_if(order, [&](int rank) { return !shown.contains(rank); });
}

Json cells(const PointData& point, const std::vector<int>& ranks,
           const std::vector<std::size_t>& steps, std::size_t most) {
  if (point.ranks < 2 || steps.empty()) return {};
  const std::size_t every = std::max<std::size_t>(1, (steps.size() + most - 1) / most);
  const std::size_t columns = (steps.size() + every - 1) / every;
  Json first = Json::array();
  std::vector<std::vector<double>> furthest(ranks.size(), std::vector<double>(columns, 0));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<double>& times = point.step_times[steps[i]];
    const double typical = statistics::median(times).value_or(0);
    if (i % every == 0) first.push_back(steps[i]);
    for (std::size_t row = 0; row < ranks.size(); ++row) {
      double& cell = furthest[row][i / every];
      const double off = times[static_cast<std::size_t>(ranks[row])] / typical - 1;
      if (std::abs(off) > std::abs(cell)) cell = off;
    }
  }
  Json time = Json::array();
  for (const std::vector<double>& of_row : furthest) {
    Json line = Json::array();
    for (const double off : of_row) {
      // Cells are shown as colours, so four decimal places are enough; a large deviation is rounded
      // to significant digits instead.
      line.push_back(drawn(std::abs(off) < 1 ? std::round(off * 1e4) / 1e4 : off));
    }
    time.push_back(std::move(line));
  }
  return {{"first", first}, {"every", every}, {"steps", steps.size()}, {"time", time}};
}

/// Adds to `map` the list `name` with the `values` of `ranks`, and their median over all ranks.
void add_column(const std::string& name, const OfRank& values, const std::vector<int>& ranks,
                Json& map) {
  Json column = Json::array();
  for (const int rank : ranks) {
    column.push_back(values.empty() ? Json{} : drawn(values[static_cast<std::size_t>(rank)]));
  }
  map[name] = std::move(column);
  OfRank known = values;
  std::erase_if(known, [](double value) { return std::isnan(value); });
  map["median"][name] = drawn(statistics::median(known));
}

}  // namespace

Json rank_map(std::span<const results::RankFacts> facts, const PointReport& point,
              const DetailLimits& limits) {
  const PointData& data = *point.data;
  const std::vector<std::size_t> steps = measured_steps(data);
  const OfRank medians = median_of_rank(data, steps);
  std::vector<int> ranks = by_host(facts, data);
  sample(point, medians, limits.rows, ranks);
  Json hosts = Json::array(), world = Json::array(), host = Json::array();
  std::map<std::string, std::size_t> place;
  for (const int rank : ranks) {
    const auto [at, is_new] = place.try_emplace(host_of(facts, data, rank), place.size());
    if (is_new) hosts.push_back(at->first);
    world.push_back(world_rank(data, rank));
    host.push_back(at->second);
  }
  Json map{{"hosts", hosts}, {"rank", ranks}, {"world_rank", world}, {"host", host}};
  map["traced"] = point.breakdown.of_rank.size();
  add_column("step", medians, ranks, map);
  for (const render::Category& category : render::categories()) {
    const auto seconds = [&](std::size_t i) {
      return point.breakdown.of_rank[i].*category.seconds;
    };
    const bool known = render::is_known(point.breakdown, category.seconds);
    add_column(std::string{category.name}, known ? traced(point, seconds) : OfRank{}, ranks, map);
  }
  add_column("caused_wait", caused_waits(point), ranks, map);
  map["cells"] = cells(data, ranks, steps, limits.columns);
  return map;
}

}  // namespace isoscale::analysis::page
