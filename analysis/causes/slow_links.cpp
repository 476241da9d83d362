// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/slow_links.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "analysis/breakdown/traced_steps.hpp"
#include "analysis/statistics/statistics.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t fewest_traced = 3;  ///< traced; fewer may all have been disturbed

using program::OpKind;

struct Kind {
  OpKind op = OpKind::all_reduce;
  mesh::AxisSet axes;
  auto operator<=>(const Kind&) const = default;
};
using Members = std::vector<int>;

/// What the members of a group spent on its ops, added up over members and ops.
struct Moved {
  double least = 0;    ///< seconds; of each op in the traced step where it took least
  double typical = 0;  ///< seconds; of each op, median over traced steps
  double bytes = 0;
};
using Transfers = std::map<Kind, std::map<Members, Moved>>;

/// The rank and the one that it exchanges with; empty where those are several, or itself.
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

/// Who takes part in the ops of one rank.
class MembersOf {
 public:
  MembersOf(const results::PointData& point, int rank) : point_(point), rank_(rank) {}

  Members of(const program::OutlineOp& op) {
    if (op.kind == OpKind::exchange) return pair_of(point_, rank_, op);
    const auto [group, added] = groups_.try_emplace(op.axes);
    if (added) group->second = mesh::group_members(point_.mesh, rank_, op.axes);
    return group->second;
  }

 private:
  const results::PointData& point_;
  int rank_;
  std::map<mesh::AxisSet, Members> groups_;
};

/// Seconds by traced step that an op of a rank transferred; steps in which not all members are
/// known are left out.
std::vector<double> transfer_times(const TracedSteps& steps, const Members& members,
                                   std::size_t rank, std::size_t op) {
  std::vector<double> times;
  for (const TracedStep& step : steps.steps) {
    if (!all_known(step, members)) continue;
    const units::Nanoseconds time =
        transfer_time(step.traces[rank]->spans[op], step.waits[rank][op]);
    times.push_back(units::to_seconds(time).value());
  }
  return times;
}

Transfers transfers_of(const results::PointData& point, const TracedSteps& steps) {
  Transfers transfers;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const bool is_known =
        std::ranges::any_of(steps.steps, [&](const auto& step) { return all_known(step, {rank}); });
    if (!is_known) continue;
    const auto& ops = point.outline.of(rank).ops;
    MembersOf members_of{point, rank};
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (!program::communicates(ops[op].kind) || ops[op].kind == OpKind::barrier) continue;
      const Members members = members_of.of(ops[op]);
      if (members.size() < 2) continue;
      const auto times = transfer_times(steps, members, static_cast<std::size_t>(rank), op);
      if (times.empty()) continue;
      Moved& moved = transfers[{.op = ops[op].kind, .axes = ops[op].axes}][members];
      moved.least += std::ranges::min(times);
      moved.typical += median(times).value_or(0);
      moved.bytes += static_cast<double>(ops[op].bytes);
    }
  }
  return transfers;
}

/// How much longer each group takes a byte, by these seconds, than the median of all; of two, than
/// the other.
std::map<Members, double> factors_of(const std::map<Members, Moved>& groups,
                                     double Moved::*seconds) {
  std::map<Members, double> cost;
  for (const auto& [members, moved] : groups) {
    if (moved.bytes > 0 && moved.*seconds > 0) cost[members] = moved.*seconds / moved.bytes;
  }
  if (cost.size() < 2) return {};
  std::vector<double> costs;
  for (const auto& [members, value] : cost) costs.push_back(value);
  const double middle = median(costs).value_or(0);
  std::map<Members, double> factors;
  for (const auto& [members, value] : cost) {
    const double other = costs.size() == 2 ? costs[0] + costs[1] - value : middle;
    factors[members] = value / other;
  }
  return factors;
}

}  // namespace

std::vector<SlowLink> slow_links(const results::PointData& point, const TracedSteps& steps) {
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

}  // namespace isoscale::analysis
