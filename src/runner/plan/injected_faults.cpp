// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/injected_faults.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

namespace isoscale::runner::plan {
namespace {

/// Converts a rank of the launch to its rank in the point; absent if the point lacks it.
std::optional<int> place_of(std::span<const int> world_ranks, int world_rank) {
  const auto found = std::ranges::find(world_ranks, world_rank);
  if (found == world_ranks.end()) return std::nullopt;
  return static_cast<int>(found - world_ranks.begin());
}

/// True if any op in the steps of a program satisfies `is_such`. Ops of the setup section do not
/// count, since setup is not measured.
template <class Predicate>
bool any_op(const program::RankProgram& program, const Predicate& is_such) {
  return std::ranges::any_of(program.steps, [&](const program::Program& step) {
    return std::ranges::any_of(step.ops, is_such);
  });
}
template <class Predicate>
bool any_op(const program::ProgramSet& set, const Predicate& is_such) {
  return std::ranges::any_of(set.programs, [&](const auto& of) { return any_op(of, is_such); });
}

bool is_gemm(const program::Op& op) {
  return program::kind_of(op.payload) == program::OpKind::gemm;
}
bool computes(const program::Op& op) { return program::computes(program::kind_of(op.payload)); }

}  // namespace

void require_ranks(std::span<const settings::Injection> injections, int ranks) {
  for (const settings::Injection& injection : injections) {
    for (const int rank : settings::ranks_of(injection)) {
      if (rank < ranks) continue;
      throw base::usage_error("--inject {}: rank {} does not exist; the launch has ranks 0 to {}",
                              injection.text, rank, ranks - 1);
    }
  }
}

bool touches(const settings::Injection& injection, const PlannedPoint& point,
             const program::ProgramSet& set) {
  std::vector<int> ranks;  // ranks within the point
  for (const int world_rank : settings::ranks_of(injection)) {
    const std::optional<int> rank = place_of(point.world_ranks, world_rank);
    if (!rank) return false;
    ranks.push_back(*rank);
  }
  struct Visitor {
    const PlannedPoint& point;
    const program::ProgramSet& set;
    std::span<const int> ranks;

    bool operator()(const settings::SlowRank&) const { return any_op(set.of(ranks[0]), is_gemm); }
    bool operator()(const settings::SlowLink&) const {
      return any_op(set.of(ranks[0]), [&](const program::Op& op) {
        const std::vector<int> partners = program::partners(op, set.mesh, ranks[0]);
        return std::ranges::find(partners, ranks[1]) != partners.end();
      });
    }
    bool operator()(const settings::Jitter&) const { return any_op(set, computes); }
    bool operator()(const settings::ClockError&) const { return !point.workload->is_bench(); }
    bool operator()(const settings::FlippedBits&) const { return !point.workload->is_bench(); }
    bool operator()(const settings::StuckRank&) const { return any_op(set.of(ranks[0]), is_gemm); }
    bool operator()(const settings::Delay&) const { return any_op(set, is_gemm); }
  };
  return std::visit(Visitor{point, set, ranks}, injection.what);
}

std::vector<std::string> idle_injections(std::span<const settings::Injection> injections,
                                         const Plan& plan) {
  std::vector<std::string> texts;
  for (const settings::Injection& injection : injections) {
    const bool is_put_in = std::ranges::any_of(plan.points, [&](const PlannedPoint& point) {
      return point.skip_reason.empty() &&
             std::ranges::find(point.injections, injection.text) != point.injections.end();
    });
    if (!is_put_in) texts.push_back(injection.text);
  }
  return texts;
}

program::Faults faults_of(std::span<const settings::Injection> injections,
                          std::span<const int> world_ranks, int world_rank, std::uint64_t seed) {
  const std::optional<int> rank = place_of(world_ranks, world_rank);
  if (!rank) return {};
  program::Faults faults{.seed = program::fill_origin(program::fill_origin(seed) +
                                                      static_cast<std::uint64_t>(world_rank))};
  for (const settings::Injection& injection : injections) {
    if (const auto* const slow = std::get_if<settings::SlowRank>(&injection.what)) {
      if (slow->rank == world_rank) faults.gemm_factor = slow->factor;
    } else if (const auto* const link = std::get_if<settings::SlowLink>(&injection.what)) {
      const std::optional<int> low = place_of(world_ranks, link->low);
      const std::optional<int> high = place_of(world_ranks, link->high);
      if (!low || !high || (*low != *rank && *high != *rank)) continue;
      faults.slow_links.push_back({.low = *low, .high = *high, .factor = link->factor});
    } else if (const auto* const jitter = std::get_if<settings::Jitter>(&injection.what)) {
      faults.jitter = jitter->mean;
    } else if (const auto* const delay = std::get_if<settings::Delay>(&injection.what)) {
      faults.gemm_rate = delay->rate.value();
    } else if (const auto* const stuck = std::get_if<settings::StuckRank>(&injection.what)) {
      if (stuck->rank != world_rank) continue;
      faults.stuck = stuck->how;
      faults.stuck_rank = world_rank;
    }
  }
  return faults;
}

std::vector<int> flipping_ranks(std::span<const settings::Injection> injections,
                                std::span<const int> world_ranks) {
  std::vector<int> ranks;
  for (const settings::Injection& injection : injections) {
    const auto* const flipped = std::get_if<settings::FlippedBits>(&injection.what);
    if (flipped == nullptr) continue;
    if (const auto rank = place_of(world_ranks, flipped->rank)) ranks.push_back(*rank);
  }
  return ranks;
}

std::optional<comm::ClockFault> clock_fault_of(std::span<const settings::Injection> injections,
                                               int world_rank) {
  for (const settings::Injection& injection : injections) {
    const auto* const clock = std::get_if<settings::ClockError>(&injection.what);
    if (clock == nullptr || clock->rank != world_rank) continue;
    return comm::ClockFault{.offset = units::to_nanoseconds(clock->offset), .drift = clock->drift};
  }
  return std::nullopt;
}

}  // namespace isoscale::runner::plan
