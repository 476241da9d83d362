// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/slow_ranks_and_links.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "statistics/estimate.hpp"
#include "statistics/sample_flags.hpp"

namespace isoscale::analysis::efficiency {
namespace {

using program::OpKind;

/// The limits for a slow rank. The factor is its GEMM time divided by that of its peers. `least` is
/// for the factor's median, `certain` for the lower end of its interval, and `without_interval` for
/// the median if there is no interval.
struct Limits {
  double least, certain, without_interval;
};
constexpr Limits against_like{.least = 1.05, .certain = 1.03, .without_interval = 1.10};
constexpr Limits against_all{.least = 1.15, .certain = 1.10, .without_interval = 1.25};
constexpr double smallest_change = 0.03;  ///< smallest relative slowdown in a run that counts
constexpr std::size_t fewest_judged = 6;  ///< steps that are needed to judge a rank
// If there are at least `least_for_spread` ranks, a slow rank's factor must exceed the median of
// all factors by `deviations` standard deviations, which are estimated from the median absolute
// deviation.
constexpr std::size_t least_for_spread = 4;
constexpr double deviations = 4;

/// Ranks that are compared with each other. Their GEMM times are divided by `unit` first: by 1, or
/// by the FLOP of the rank.
struct Peers {
  std::vector<int> ranks{};
  std::vector<double> unit;
  Limits limits = against_like;
  bool by_rate = false;
};

std::vector<Peers> peers_of(const results::PointData& point) {
  std::map<std::uint32_t, std::vector<int>> of_program;
  for (int rank = 0; rank < point.ranks; ++rank) {
    of_program[point.outline.outline_of_rank[static_cast<std::size_t>(rank)]].push_back(rank);
  }
  std::vector<Peers> all;
  bool any_alone = false;
  for (const auto& [program, ranks] : of_program) {
    any_alone = any_alone || ranks.size() == 1;
    if (ranks.size() > 1) {
      all.push_back({.ranks = ranks, .unit = std::vector<double>(ranks.size(), 1.0)});
    }
  }
  const bool known = std::ranges::all_of(point.flop_of_rank, [](double flop) { return flop > 0; });
  if (!any_alone || !known || std::cmp_not_equal(point.flop_of_rank.size(), point.ranks)) {
    return all;
  }
  Peers mixed{.unit = point.flop_of_rank, .limits = against_all, .by_rate = true};
  for (int rank = 0; rank < point.ranks; ++rank) mixed.ranks.push_back(rank);
  if (mixed.ranks.size() > 1) all.push_back(std::move(mixed));
  return all;
}

/// Returns the time to compare times[at] with: the median of all, or the other one of two times.
double reference(const std::vector<double>& times, std::size_t at) {
  if (times.size() == 2) return times[1 - at];
  return statistics::median(times).value_or(0);
}

/// The ratios of each peer's GEMM time (divided by its unit) to its reference(). They are for the
/// steps that count (see breakdown::step_counts) and in which all peers have a time.
struct Ratios {
  std::vector<std::uint32_t> step{};         ///< number among all steps of the point
  std::vector<std::vector<double>> of_peer;  ///< [peer][step]
};

Ratios ratios_of(const results::PointData& point, const Peers& peers) {
  Ratios ratios{.of_peer = std::vector<std::vector<double>>(peers.ranks.size())};
  for (const results::OpSums& step : point.op_sums) {
    if (!breakdown::step_counts(point, step.step)) continue;
    if (std::cmp_not_equal(step.gemm.size(), point.ranks)) continue;
    std::vector<double> times;
    for (std::size_t i = 0; i < peers.ranks.size(); ++i) {
      times.push_back(step.gemm[static_cast<std::size_t>(peers.ranks[i])] / peers.unit[i]);
    }
    const bool measured =
        std::ranges::all_of(times, [](double time) { return std::isfinite(time) && time > 0; });
    if (!measured) continue;
    ratios.step.push_back(step.step);
    for (std::size_t i = 0; i < times.size(); ++i) {
      ratios.of_peer[i].push_back(times[i] / reference(times, i));
    }
  }
  return ratios;
}

/// The factor by which a peer takes longer, over the steps since it last became slower.
struct Slowness {
  std::size_t first = 0;  ///< index of the first of these steps; 0 = all steps
  statistics::Estimate factor;
};

std::optional<Slowness> slowness(std::span<const double> ratios) {
  const std::size_t change = statistics::last_change(ratios, smallest_change);
  const bool slower = change > 0 && statistics::median(ratios.subspan(change)).value_or(0) >
                                        statistics::median(ratios.first(change)).value_or(0);
  const std::size_t first = slower ? change : 0;
  const auto factor = statistics::estimate(ratios.subspan(first));
  if (!factor) return std::nullopt;
  return Slowness{.first = first, .factor = *factor};
}

/// Returns the factor that a rank must exceed to stand out from the spread of all peers' factors.
double outside_of_spread(const std::vector<double>& factors) {
  if (factors.size() < least_for_spread) return 1;
  return statistics::median(factors).value_or(1) +
         deviations * statistics::scaled_deviation(factors);
}

bool is_slow(const statistics::Estimate& factor, const Limits& limits) {
  if (factor.samples < fewest_judged) return false;
  if (factor.lower) return factor.median > limits.least && *factor.lower > limits.certain;
  // There is no interval if successive ratios are correlated. Then the median must exceed a higher
  // limit, and the smallest ratio must exceed limits.certain.
  return factor.median > limits.without_interval && factor.minimum > limits.certain;
}

void add_slow(const results::PointData& point, const Peers& peers, std::vector<SlowRank>& slow) {
  const Ratios ratios = ratios_of(point, peers);
  if (ratios.step.empty()) return;
  std::vector<Slowness> all;
  std::vector<double> factors;
  for (const auto& of_peer : ratios.of_peer) {
    const auto found = slowness(of_peer);
    if (!found) return;
    all.push_back(*found);
    factors.push_back(found->factor.median);
  }
  const double beyond = outside_of_spread(factors);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [first, factor] = all[i];
    const bool named = std::ranges::find(slow, peers.ranks[i], &SlowRank::rank) != slow.end();
    if (named || factor.median <= beyond || !is_slow(factor, peers.limits)) continue;
    slow.push_back({.rank = peers.ranks[i],
                    .factor = factor.median,
                    .lower = factor.lower,
                    .upper = factor.upper,
                    .since = first == 0 ? std::nullopt : std::optional{ratios.step[first]},
                    .by_rate = peers.by_rate});
  }
}

constexpr std::size_t fewest_traced = 3;  ///< steps; in fewer, other activity may have slowed all
                                          ///< of them

struct TransferKind {
  OpKind op = OpKind::all_reduce;
  mesh::AxisSet axes;
  auto operator<=>(const TransferKind&) const = default;
};
using Members = std::vector<int>;

/// The transfer time and bytes of a group's ops, summed over members and ops.
struct Moved {
  double least = 0;    ///< seconds; sum over ops of the least time in any traced step
  double typical = 0;  ///< seconds; sum over ops of the median over traced steps
  double bytes = 0;
};
using Transfers = std::map<TransferKind, std::map<Members, Moved>>;

/// Returns the rank and its partner in an exchange; empty if there are several partners, or if the
/// rank is its own partner.
Members pair_of(const results::PointData& point, int rank, const program::OutlineOp& exchange) {
  std::optional<int> partner;
  for (const auto& transfer : point.outline.of(rank).transfers_of(exchange)) {
    const int peer = mesh::neighbour(point.mesh, rank, transfer.axis, transfer.offset);
    if (partner.value_or(peer) != peer) return {};
    partner = peer;
  }
  if (partner.value_or(rank) == rank) return {};
  return {std::min(rank, *partner), std::max(rank, *partner)};
}

/// Returns the transfer time, in seconds, of one op of a rank in each traced step. Steps in which
/// some member's waits are not known are left out.
std::vector<double> transfer_times(const breakdown::TracedSteps& steps, const Members& members,
                                   std::size_t rank, std::size_t op) {
  std::vector<double> times;
  for (const breakdown::TracedStep& step : steps.steps) {
    if (!breakdown::all_known(step, members)) continue;
    const units::Nanoseconds time =
        breakdown::transfer_time(step.traces[rank]->spans[op], step.waits[rank][op]);
    times.push_back(units::to_seconds(time).value());
  }
  return times;
}

Transfers transfers_of(const results::PointData& point, const breakdown::TracedSteps& steps) {
  Transfers transfers;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const bool is_known = std::ranges::any_of(
        steps.steps, [&](const auto& step) { return breakdown::all_known(step, {rank}); });
    if (!is_known) continue;
    const auto& ops = point.outline.of(rank).ops;
    std::map<mesh::AxisSet, Members> groups;  // members of the rank's group, by axes
    const auto members_of = [&](const program::OutlineOp& op) {
      if (op.kind == OpKind::exchange) return pair_of(point, rank, op);
      const auto [group, added] = groups.try_emplace(op.axes);
      if (added) group->second = mesh::group_members(point.mesh, rank, op.axes);
      return group->second;
    };
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (!program::communicates(ops[op].kind) || ops[op].kind == OpKind::barrier) continue;
      const Members members = members_of(ops[op]);
      if (members.size() < 2) continue;
      const auto times = transfer_times(steps, members, static_cast<std::size_t>(rank), op);
      if (times.empty()) continue;
      Moved& moved = transfers[{.op = ops[op].kind, .axes = ops[op].axes}][members];
      moved.least += std::ranges::min(times);
      moved.typical += statistics::median(times).value_or(0);
      moved.bytes += static_cast<double>(ops[op].bytes);
    }
  }
  return transfers;
}

/// Returns each group's time per byte divided by the median of all groups, or by that of the other
/// group if there are two.
std::map<Members, double> factors_of(const std::map<Members, Moved>& groups,
                                     double Moved::*seconds) {
  std::map<Members, double> cost;
  for (const auto& [members, moved] : groups) {
    if (moved.bytes > 0 && moved.*seconds > 0) cost[members] = moved.*seconds / moved.bytes;
  }
  if (cost.size() < 2) return {};
  std::vector<double> costs;
  for (const auto& [members, value] : cost) costs.push_back(value);
  const double middle = statistics::median(costs).value_or(0);
  for (auto& [members, value] : cost) {
    value /= costs.size() == 2 ? costs[0] + costs[1] - value : middle;
  }
  return cost;
}

}  // namespace

std::vector<SlowRank> slow_ranks(const results::PointData& point) {
  std::vector<SlowRank> slow;
  if (point.op_sums.empty() || !breakdown::outline_problem(point).empty()) return slow;
  for (const Peers& peers : peers_of(point)) add_slow(point, peers, slow);
  return slow;
}

std::vector<SlowLink> slow_links(const results::PointData& point,
                                 const breakdown::TracedSteps& steps) {
  std::vector<SlowLink> slow;
  if (steps.steps.size() < fewest_traced) return slow;
  for (const auto& [kind, groups] : transfers_of(point, steps)) {
    const double least = groups.size() == 2 ? 1.5 : 1.25;
    const double typical = groups.size() == 2 ? 1.25 : 1.15;
    const auto typical_factors = factors_of(groups, &Moved::typical);
    for (const auto& [members, factor] : factors_of(groups, &Moved::least)) {
      const auto usual = typical_factors.find(members);
      const bool is_usual = usual != typical_factors.end() && usual->second > typical;
      if (factor < least || !is_usual) continue;
      slow.push_back({.op = std::string{program::name(kind.op)},
                      .axes = mesh::to_string(mesh::varying(point.mesh, kind.axes)),
                      .members = members,
                      .factor = factor});
    }
  }
  return slow;
}

std::vector<int> shared_by(const std::vector<SlowLink>& links) {
  if (links.size() < 2) return {};
  std::vector<int> shared = links.front().members;
  for (const SlowLink& link : links) {
    std::vector<int> both;
    std::ranges::set_intersection(shared, link.members, std::back_inserter(both));
    shared = std::move(both);
  }
  return shared;
}

}  // namespace isoscale::analysis::efficiency
