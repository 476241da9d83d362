// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "program/fill.hpp"

namespace isoscale::runner {
namespace {

/// The rank of the point that a rank of the launch is; absent: it is none.
std::optional<int> place_of(std::span<const std::int64_t> world_ranks, int world_rank) {
  const auto found = std::ranges::find(world_ranks, std::int64_t{world_rank});
  if (found == world_ranks.end()) return std::nullopt;
  return static_cast<int>(found - world_ranks.begin());
}

}  // namespace

void require_ranks(std::span<const config::Injection> injections, int ranks) {
  for (const config::Injection& injection : injections) {
    for (const int rank : config::ranks_of(injection)) {
      if (rank < ranks) continue;
      throw base::UsageError(
          fmt::format("--inject {}: there is no rank {}; the launch has the ranks 0 to {}",
                      injection.text, rank, ranks - 1));
    }
  }
}

std::vector<std::string> injections_on(std::span<const config::Injection> injections,
                                       const PlannedPoint& point) {
  std::vector<std::string> texts;
  for (const config::Injection& injection : injections) {
    const bool is_clock = std::holds_alternative<config::ClockError>(injection.what);
    if (is_clock && point.workload->is_bench()) continue;
    const std::vector<int> ranks = config::ranks_of(injection);
    const bool touches = std::ranges::all_of(ranks, [&](int rank) {
      return std::ranges::find(point.world_ranks, rank) != point.world_ranks.end();
    });
    if (touches) texts.push_back(injection.text);
  }
  return texts;
}

program::Faults faults_of(std::span<const config::Injection> injections,
                          std::span<const std::int64_t> world_ranks, int rank, std::uint64_t seed) {
  const std::int64_t own = world_ranks[static_cast<std::size_t>(rank)];
  program::Faults faults{
      .seed = program::fill_origin(program::fill_origin(seed) + static_cast<std::uint64_t>(own))};
  for (const config::Injection& injection : injections) {
    if (const auto* const slow = std::get_if<config::SlowRank>(&injection.what)) {
      if (slow->rank == own) faults.gemm_factor = slow->factor;
    } else if (const auto* const link = std::get_if<config::SlowLink>(&injection.what)) {
      const std::optional<int> low = place_of(world_ranks, link->low);
      const std::optional<int> high = place_of(world_ranks, link->high);
      if (!low || !high || (*low != rank && *high != rank)) continue;
      faults.slow_links.push_back({.low = *low, .high = *high, .factor = link->factor});
    } else if (const auto* const jitter = std::get_if<config::Jitter>(&injection.what)) {
      faults.jitter = jitter->mean;
    }
  }
  return faults;
}

std::optional<comm::ClockFault> clock_fault_of(std::span<const config::Injection> injections,
                                               int world_rank) {
  for (const config::Injection& injection : injections) {
    const auto* const clock = std::get_if<config::ClockError>(&injection.what);
    if (clock == nullptr || clock->rank != world_rank) continue;
    return comm::ClockFault{.offset = units::to_nanoseconds(clock->offset), .drift = clock->drift};
  }
  return std::nullopt;
}

void misread(const comm::ClockSync& clocks, Record& record) {
  for (timeline::StepTrace& trace : record.traces) {
    trace.begin = clocks.shown(trace.begin);
    trace.end = clocks.shown(trace.end);
    for (timeline::Span& span : trace.spans) {
      span.start = clocks.shown(span.start);
      span.end = clocks.shown(span.end);
    }
  }
}

}  // namespace isoscale::runner
