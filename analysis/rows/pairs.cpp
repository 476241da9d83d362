// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

#include "analysis/rank_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis {
namespace {

using PairMap = std::map<std::pair<int, int>, PairReport>;

PairReport& pair_at(PairMap& pairs, int src, int dst, const RowReport& row) {
  PairReport& pair = pairs[{src, dst}];
  pair.src = src;
  pair.dst = dst;
  if (pair.link_class.empty()) pair.link_class = text_of(*row.data, "class");
  if (row.data->status != results::PointStatus::ok && pair.failure.empty()) {
    pair.failure = fmt::format("{} {}: {}", text_of(*row.data, "kind"),
                               results::name(row.data->status), row.data->reason);
  }
  return pair;
}

std::optional<double> latency_of(const RowReport& row) {
  if (row.data->status != results::PointStatus::ok || !row.time) return std::nullopt;
  return row.time->median;
}

/// The values that pairs have of one quantity.
std::vector<double> values_of(std::span<const PairReport* const> pairs,
                              std::optional<double> PairReport::*quantity) {
  std::vector<double> values;
  for (const PairReport* const pair : pairs) {
    if (pair->*quantity) values.push_back(*(pair->*quantity));
  }
  return values;
}

std::map<std::string, std::vector<const PairReport*>> by_class(std::span<const PairReport> pairs) {
  std::map<std::string, std::vector<const PairReport*>> classes;
  for (const PairReport& pair : pairs) classes[pair.link_class].push_back(&pair);
  return classes;
}

/// What the pairs of a class are compared with, and below what they are slow.
struct Threshold {
  double typical = 0, slow_below = 0;
};

/// What counts as slow at the least, as a part of the typical speed.
struct Margin {
  double of_many = 0, of_few = 0;
};
constexpr Margin of_bandwidth{.of_many = 0.10, .of_few = 0.25};
constexpr Margin of_latency{.of_many = 1.0 / 3, .of_few = 0.5};  // 1.5 and 2 times as long

std::optional<Threshold> threshold(const std::vector<double>& values, const Margin& margin) {
  constexpr std::size_t fewest_for_spread = 4;
  constexpr double deviations = 3.5, mad_of_normal = 1.4826;
  constexpr double always_slow = 4;  ///< times below the typical speed
  if (values.size() < 2) return std::nullopt;
  if (values.size() < fewest_for_spread) {
    const double best = std::ranges::max(values);
    return Threshold{.typical = best, .slow_below = best * (1 - margin.of_few)};
  }
  std::vector<double> logs(values.size());
  std::ranges::transform(values, logs.begin(), [](double value) { return std::log(value); });
  const double middle = *median(logs);
  for (double& log : logs) log = std::abs(log - middle);
  // However widely a class spreads: its slow pairs widen the spread that is to tell them.
  const double spread = std::min(deviations * mad_of_normal * *median(logs), std::log(always_slow));
  return Threshold{.typical = std::exp(middle),
                   .slow_below = std::exp(middle - std::max(spread, -std::log1p(-margin.of_many)))};
}

}  // namespace

std::vector<PairReport> merge_pairs(std::span<const RowReport> rows) {
  PairMap pairs;
  for (const RowReport& row : rows) {
    const auto src = number_of(*row.data, "src"), dst = number_of(*row.data, "dst");
    if (text_of(*row.data, "op") != "p2p" || !src || !dst) continue;
    const auto from = static_cast<int>(*src), to = static_cast<int>(*dst);
    const std::string kind = text_of(*row.data, "kind");
    if (kind == "bandwidth") {
      pair_at(pairs, from, to, row).bandwidth = row.bandwidth;
    } else if (kind == "latency" || kind == "bidirectional") {
      const bool latency = kind == "latency";
      auto& here = pair_at(pairs, from, to, row);
      (latency ? here.latency : here.bidirectional) = latency ? latency_of(row) : row.bandwidth;
      auto& there = pair_at(pairs, to, from, row);
      auto& mirrored = latency ? there.latency : there.bidirectional;
      if (!mirrored) mirrored = latency ? here.latency : here.bidirectional;
    }
  }
  std::vector<PairReport> result;
  for (auto& [ends, pair] : pairs) result.push_back(std::move(pair));
  return result;
}

std::vector<ClassReport> classes_of(std::span<const PairReport> pairs) {
  std::vector<ClassReport> classes;
  for (const auto& [name, members] : by_class(pairs)) {
    const std::vector<double> bandwidths = values_of(members, &PairReport::bandwidth);
    ClassReport report{.name = name,
                       .pairs = static_cast<int>(members.size()),
                       .latency = median(values_of(members, &PairReport::latency)),
                       .bandwidth = median(bandwidths),
                       .bidirectional = median(values_of(members, &PairReport::bidirectional)),
                       .lowest = std::nullopt,
                       .highest = std::nullopt};
    if (!bandwidths.empty()) {
      report.lowest = std::ranges::min(bandwidths);
      report.highest = std::ranges::max(bandwidths);
    }
    classes.push_back(std::move(report));
  }
  std::ranges::stable_sort(classes, [](const ClassReport& a, const ClassReport& b) {
    return a.bandwidth.value_or(0) > b.bandwidth.value_or(0);
  });
  return classes;
}

std::string rank_name(const results::PointData& point, int rank,
                      std::span<const results::RankFacts> facts) {
  std::string name = fmt::format("rank {}", world_rank(point, rank));
  const results::RankFacts* const known = facts_of(facts, point, rank);
  if (known == nullptr) return name;
  if (!known->host.empty()) name += " on " + known->host;
  const auto text = [&](const char* key) {
    const auto found = known->text.find(key);
    return found == known->text.end() ? std::string{} : found->second;
  };
  if (const std::string pci = text("gpu_pci"); !pci.empty()) {
    name += ", GPU " + pci;
  } else if (const std::string cpus = text("bound_cpus"); !cpus.empty()) {
    name += ", CPUs " + cpus;
  }
  return name;
}

std::vector<SlowPair> slow_pairs(std::span<const PairReport> pairs, const results::PointData& point,
                                 std::span<const results::RankFacts> facts) {
  constexpr std::pair<std::string_view, std::optional<double> PairReport::*> quantities[] = {
      {"bandwidth", &PairReport::bandwidth},
      {"bidirectional", &PairReport::bidirectional},
      {"latency", &PairReport::latency}};
  std::vector<SlowPair> slow;
  for (const auto& [name, members] : by_class(pairs)) {
    for (const auto& [quantity, value] : quantities) {
      std::vector<const PairReport*> counted = members;
      if (quantity != "bandwidth") {  // both directions at once: a pair counts once
        std::erase_if(counted, [](const PairReport* pair) { return pair->src > pair->dst; });
      }
      // Of latencies, how many messages a second: less is slow, as with bandwidth.
      const bool inverts = quantity == "latency";
      std::vector<double> speeds = values_of(counted, value);
      if (inverts) std::ranges::transform(speeds, speeds.begin(), [](double t) { return 1 / t; });
      const auto limit = threshold(speeds, inverts ? of_latency : of_bandwidth);
      if (!limit) continue;
      const double typical = inverts ? 1 / limit->typical : limit->typical;
      for (const PairReport* const pair : counted) {
        if (!(pair->*value)) continue;
        const double speed = inverts ? 1 / *(pair->*value) : *(pair->*value);
        if (speed >= limit->slow_below) continue;
        slow.push_back({.src = pair->src,
                        .dst = pair->dst,
                        .link_class = name,
                        .quantity = quantity,
                        .value = *(pair->*value),
                        .typical = typical,
                        .from = rank_name(point, pair->src, facts),
                        .to = rank_name(point, pair->dst, facts)});
      }
    }
  }
  std::ranges::stable_sort(
      slow, [](const SlowPair& a, const SlowPair& b) { return a.share() < b.share(); });
  return slow;
}

}  // namespace isoscale::analysis
