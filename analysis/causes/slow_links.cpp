// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/slow_links.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "analysis/statistics/statistics.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

struct Kind {
  OpKind op = OpKind::all_reduce;
  mesh::AxisSet axes;
  auto operator<=>(const Kind&) const = default;
};
using Members = std::vector<int>;

struct Moved {
  double seconds = 0, bytes = 0;
};
/// Of one traced step.
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

Transfers transfers_of(const results::PointData& point, const TracedStep& step) {
  Transfers transfers;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const timeline::StepTrace* const trace = step.traces[at];
    if (trace == nullptr || step.waits[at].empty()) continue;
    const auto& ops = point.outline.of(rank).ops;
    MembersOf members_of{point, rank};
    for (std::size_t op = 0; op < ops.size(); ++op) {
      if (!program::communicates(ops[op].kind) || ops[op].kind == OpKind::barrier) continue;
      const Members members = members_of.of(ops[op]);
      if (members.size() < 2) continue;
      const auto& span = trace->spans[op];
      Moved& moved = transfers[{.op = ops[op].kind, .axes = ops[op].axes}][members];
      moved.seconds += units::to_seconds(span.end - span.start - step.waits[at][op]).value();
      moved.bytes += static_cast<double>(ops[op].bytes);
    }
  }
  return transfers;
}

/// How much longer each group takes a byte than the median of all; of two, than the other.
std::map<Members, double> factors_of(const std::map<Members, Moved>& groups) {
  std::map<Members, double> cost;
  for (const auto& [members, moved] : groups) {
    if (moved.bytes > 0 && moved.seconds > 0) cost[members] = moved.seconds / moved.bytes;
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
  std::vector<Transfers> of_step;
  Transfers whole;
  for (const TracedStep& step : steps.steps) {
    of_step.push_back(transfers_of(point, step));
    for (const auto& [kind, groups] : of_step.back()) {
      for (const auto& [members, moved] : groups) {
        whole[kind][members].seconds += moved.seconds;
        whole[kind][members].bytes += moved.bytes;
      }
    }
  }
  std::vector<SlowLink> slow;
  for (const auto& [kind, groups] : whole) {
    const double least = groups.size() == 2 ? 1.5 : 1.25;
    const double in_each = groups.size() == 2 ? 1.25 : 1.15;
    for (const auto& [members, factor] : factors_of(groups)) {
      const bool always = std::ranges::all_of(
          of_step, [&, &kind = kind, &members = members](const Transfers& step) {
            const auto at = step.find(kind);
            if (at == step.end()) return false;
            const auto factors = factors_of(at->second);
            const auto mine = factors.find(members);
            return mine != factors.end() && mine->second > in_each;
          });
      if (factor < least || !always) continue;
      slow.push_back({.op = std::string{program::name(kind.op)},
                      .axes = mesh::to_string(kind.axes),
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
