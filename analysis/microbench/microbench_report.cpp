// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/microbench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "results/records/point_facts.hpp"
#include "statistics/sample_flags.hpp"
#include "units/quantity_text.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::microbench {
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

/// Merges rows of the kinds latency, bandwidth and bidirectional into pairs, ordered by src and
/// dst. Latency (half of a round trip) and bidirectional bandwidth hold for both directions.
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

/// Returns the results of each link class, ordered by falling median bandwidth.
std::vector<ClassReport> classes_of(std::span<const PairReport> pairs) {
  std::vector<ClassReport> classes;
  for (const auto& [name, members] : by_class(pairs)) {
    const std::vector<double> bandwidths = values_of(members, &PairReport::bandwidth);
    const bool is_known = !bandwidths.empty();
    classes.push_back(
        {.name = name,
         .pairs = static_cast<int>(members.size()),
         .latency = statistics::median(values_of(members, &PairReport::latency)),
         .bandwidth = statistics::median(bandwidths),
         .bidirectional = statistics::median(values_of(members, &PairReport::bidirectional)),
         .lowest = is_known ? std::optional{std::ranges::min(bandwidths)} : std::nullopt,
         .highest = is_known ? std::optional{std::ranges::max(bandwidths)} : std::nullopt});
  }
  std::ranges::stable_sort(classes, [](const ClassReport& a, const ClassReport& b) {
    return a.bandwidth.value_or(0) > b.bandwidth.value_or(0);
  });
  return classes;
}

/// The speed with which the pairs of a class are compared, and the speed below which they are slow.
struct SpeedLimit {
  double typical = 0, slow_below = 0;
};

/// A slow pair's speed is below the typical speed by more than this share of it: `of_many` for
/// classes of at least four pairs, `of_few` for smaller ones.
struct Margin {
  double of_many = 0, of_few = 0;
};
constexpr Margin of_bandwidth{.of_many = 0.10, .of_few = 0.25};
constexpr Margin of_latency{.of_many = 1.0 / 3, .of_few = 0.5};  // 1.5 and 2 times as long

std::optional<SpeedLimit> speed_limit(const std::vector<double>& values, const Margin& margin) {
  constexpr std::size_t fewest_for_spread = 4;
  constexpr double deviations = 3.5;
  constexpr double always_slow = 4;  ///< a pair slower than typical / 4 is always slow
  if (values.size() < 2) return std::nullopt;
  if (values.size() < fewest_for_spread) {
    const double best = std::ranges::max(values);
    return SpeedLimit{.typical = best, .slow_below = best * (1 - margin.of_few)};
  }
  std::vector<double> logs(values.size());
  std::ranges::transform(values, logs.begin(), [](double value) { return std::log(value); });
  const double middle = *statistics::median(logs);
  // The spread has an upper limit, since slow pairs widen it and would then not be detected.
  const double spread =
      std::min(deviations * statistics::scaled_deviation(logs), std::log(always_slow));
  return SpeedLimit{
      .typical = std::exp(middle),
      .slow_below = std::exp(middle - std::max(spread, -std::log1p(-margin.of_many)))};
}

constexpr std::size_t fewest_plays = 6;  ///< a median of fewer repetitions (plays) has no interval
constexpr double widest_of_a_share = 1;  ///< a share with a wider interval is not known

/// The times of a GEMM and a collective by part: "gemm", "collective" and "together" from
/// repetitions (plays) without tracing, "gemm traced", "collective together", ... from traced ones.
using PartTimes = std::map<std::string, statistics::Estimate>;

/// Returns OverlapReport::hidden, computed from the three medians. The half-widths of its interval
/// combine in quadrature its changes when one median is replaced by an end of that time's interval.
std::optional<statistics::Located> hidden_of(const PartTimes& times) {
  constexpr std::array<const char*, 3> parts{"gemm", "collective", "together"};
  std::array<const statistics::Estimate*, 3> all{};
  for (std::size_t part = 0; part < all.size(); ++part) {
    const auto found = times.find(parts[part]);
    if (found == times.end()) return std::nullopt;
    all[part] = &found->second;
  }
  std::array<double, 3> medians{};
  std::ranges::transform(all, medians.begin(), &statistics::Estimate::median);
  if (!(std::min(medians[0], medians[1]) > 0)) return std::nullopt;
  const auto share_at = [](const std::array<double, 3>& at) {
    const auto& [gemm, communication, together] = at;
    return (gemm + communication - together) / std::min(gemm, communication);
  };
  statistics::Located share{.value = share_at(medians)};
  double below = 0, above = 0;
  for (std::size_t part = 0; part < all.size(); ++part) {
    if (!all[part]->lower || !all[part]->upper || !(*all[part]->lower > 0)) return share;
    double down = 0, up = 0;
    for (const double end : {*all[part]->lower, *all[part]->upper}) {
      auto moved = medians;
      moved[part] = end;
      down = std::max(down, share.value - share_at(moved));
      up = std::max(up, share_at(moved) - share.value);
    }
    below = std::hypot(below, down);
    above = std::hypot(above, up);
  }
  share.lower = share.value - below;
  share.upper = share.value + above;
  return share;
}

std::string why_unknown(const OverlapReport& report, const std::string& few_plays) {
  if (!few_plays.empty()) {
    return fmt::format("fewer than {} plays ({}): raise --max-time", fewest_plays, few_plays);
  }
  if (!report.hidden || report.hidden_known) return "";
  if (!report.hidden->lower) {
    return "hidden has no interval, as plays depend on those before them: raise --max-time";
  }
  return fmt::format("hidden is not known, its 95% interval is {} to {}: raise --max-time",
                     units::format_percent(*report.hidden->lower),
                     units::format_percent(*report.hidden->upper));
}

OverlapReport overlap_of(const std::vector<const RowReport*>& rows) {
  OverlapReport report;
  PartTimes times;
  std::string few_plays;  // parts with too few repetitions: "together 3, gemm 5"
  for (const RowReport* const row : rows) {
    const results::RowData& data = *row->data;
    fill_in(report.collective, text_of(data, "collective"));
    fill_in(report.dtype, text_of(data, "dtype"));
    fill_in(report.bytes, number_of(data, "bytes"));
    fill_in(report.m, number_of(data, "m"));
    fill_in(report.n, number_of(data, "n"));
    fill_in(report.k, number_of(data, "k"));
    const std::string part = text_of(data, "part");
    if (data.status != results::PointStatus::ok) {
      fill_in(report.failure,
              fmt::format("{} {}: {}", part, results::name(data.status), data.reason));
    } else if (data.times.size() < fewest_plays) {
      few_plays += fmt::format("{}{} {}", few_plays.empty() ? "" : ", ", part, data.times.size());
    } else if (row->time) {
      times.insert_or_assign(part, *row->time);
    }
  }
  const auto median_of = [&times](const char* part) {
    const auto found = times.find(part);
    return found == times.end() ? std::nullopt : std::optional{found->second.median};
  };
  report.gemm = median_of("gemm");
  report.communication = median_of("collective");
  report.together = median_of("together");
  const auto against = [](std::optional<double> beside, std::optional<double> alone) {
    return beside && alone && *alone > 0 ? std::optional{*beside / *alone} : std::nullopt;
  };
  // Only traced repetitions give the time of each stream during overlap, so these times are
  // compared with traced times of each part alone.
  report.gemm_slowdown = against(median_of("gemm together"), median_of("gemm traced"));
  report.communication_slowdown =
      against(median_of("collective together"), median_of("collective traced"));
  report.hidden = hidden_of(times);
  report.hidden_known = report.hidden && report.hidden->lower &&
                        *report.hidden->upper - *report.hidden->lower <= widest_of_a_share;
  report.why_unknown = why_unknown(report, few_plays);
  return report;
}

}  // namespace

std::string rank_name(const results::PointData& point, int rank,
                      std::span<const results::RankFacts> facts) {
  std::string name = fmt::format("rank {}", world_rank(point, rank));
  const results::RankFacts* const known = facts_of(facts, point, rank);
  if (known == nullptr) return name;
  if (!known->host.empty()) name += " on " + known->host;
  if (const std::string pci = text_of(*known, "gpu_pci"); !pci.empty()) {
    name += ", GPU " + pci;
  } else if (const std::string cpus = text_of(*known, "bound_cpus"); !cpus.empty()) {
    name += ", CPUs " + cpus;
  }
  return name;
}

const Datasheet* common_datasheet(std::span<const results::RankFacts> facts,
                                  const results::PointData& point, std::span<const int> ranks) {
  const Datasheet* common = nullptr;
  const int count = ranks.empty() ? point.ranks : static_cast<int>(ranks.size());
  for (int i = 0; i < count; ++i) {
    const int rank = ranks.empty() ? i : ranks[static_cast<std::size_t>(i)];
    const bool is_of_point = rank >= 0 && rank < point.ranks;
    const results::RankFacts* const known = is_of_point ? facts_of(facts, point, rank) : nullptr;
    const Datasheet* const sheet = known == nullptr ? nullptr : datasheet_of(*known);
    if (sheet == nullptr || (common != nullptr && sheet != common)) return nullptr;
    common = sheet;
  }
  return common;
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
      if (quantity != "bandwidth") {  // both directions have the same value, which counts once
        std::erase_if(counted, [](const PairReport* pair) { return pair->src > pair->dst; });
      }
      // Latencies are converted to messages per second, so that smaller values are slower.
      const bool inverts = quantity == "latency";
      std::vector<double> speeds = values_of(counted, value);
      if (inverts) std::ranges::transform(speeds, speeds.begin(), [](double t) { return 1 / t; });
      const auto limit = speed_limit(speeds, inverts ? of_latency : of_bandwidth);
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

std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows) {
  std::vector<std::pair<std::string, std::vector<const RowReport*>>> pairs;  // by "pair" of the row
  for (const RowReport& row : rows) {
    if (text_of(*row.data, "op") != "overlap") continue;
    const std::string number = text_of(*row.data, "pair");
    auto pair = std::ranges::find(pairs, number, [](const auto& at) { return at.first; });
    if (pair == pairs.end()) pair = pairs.insert(pair, {number, {}});
    pair->second.push_back(&row);
  }
  std::vector<OverlapReport> reports;
  for (const auto& [number, of_pair] : pairs) reports.push_back(overlap_of(of_pair));
  return reports;
}

bool is_bench(const results::PointData& point) {
  return is_bench(point.workload, point.step_times.size(), point.rows.size());
}

bool is_bench(std::string_view workload, std::size_t steps, std::size_t rows) {
  const auto known = std::ranges::find(workloads::registry(), workload, &workloads::Workload::name);
  const bool has_rows = known != workloads::registry().end() && known->is_bench();
  return rows > 0 || (steps == 0 && has_rows);
}

BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                         const results::CalibrationData& calibration) {
  BenchReport report;
  const auto datasheet_of_ranks = [&](std::span<const int> ranks) {
    return common_datasheet(run.rank_facts, point, ranks);
  };
  const Datasheet* const of_all = datasheet_of_ranks({});
  report.rows.reserve(point.rows.size());
  for (const results::RowData& row : point.rows) {
    // A datasheet that all ranks share is that of every row, which saves a search for each row;
    // there may be a row for each pair of ranks.
    const bool is_of_all = row.ranks.empty() || of_all != nullptr;
    const Datasheet* const sheet = is_of_all ? of_all : datasheet_of_ranks(row.ranks);
    report.rows.push_back(report_row(row, {.calibration = &calibration, .datasheet = sheet}));
  }
  report.pairs = merge_pairs(report.rows);
  report.classes = classes_of(report.pairs);
  report.slow = slow_pairs(report.pairs, point, run.rank_facts);
  report.overlaps = merge_overlaps(report.rows);
  return report;
}

}  // namespace isoscale::analysis::microbench
