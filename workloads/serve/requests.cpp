// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/serve/requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::serve {

namespace {

/// Returns element `index` of a stream of random numbers, uniform in (0, 1].
double uniform(std::uint64_t key, std::uint64_t index) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  constexpr double unit = 0x1p-53;
  const std::uint64_t word = program::scatter_bits(program::fill_origin(key) + index * step);
  return static_cast<double>((word >> 11U) + 1) * unit;
}

}  // namespace

std::vector<double> arrival_times(const Arrivals& arrivals, std::uint64_t count,
                                  std::uint64_t seed) {
  const std::uint64_t key = stack::fill_key(seed, "arrivals");
  const std::uint64_t together = arrivals.process == Process::bursty ? arrivals.burst : 1;
  const double gap = static_cast<double>(together) / arrivals.rate;
  std::vector<double> times;
  double now = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % together == 0) now += -std::log(uniform(key, i / together)) * gap;
    times.push_back(now);
  }
  return times;
}

std::vector<std::uint64_t> answer_lengths(Lengths lengths, std::uint64_t output,
                                          std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> tokens(count, output);
  if (lengths == Lengths::fixed) return tokens;
  const std::uint64_t key = stack::fill_key(seed, "lengths");
  for (std::uint64_t i = 0; i < count; ++i) {
    tokens[i] =
        static_cast<std::uint64_t>(std::ceil(uniform(key, i) * static_cast<double>(output)));
  }
  return tokens;
}

bool Dispatch::is_better(const State& one, const State& other) const {
  switch (policy_) {
    case Policy::round_robin:
      return false;
    case Policy::least_loaded:
      return one.work < other.work;
    case Policy::shortest_queue:
      return one.requests < other.requests;
  }
  return false;
}

std::size_t Dispatch::assign(double work) {
  std::size_t best = turn_;
  for (std::size_t i = 1; i < state_.size(); ++i) {
    const std::size_t next = (turn_ + i) % state_.size();
    if (is_better(state_[next], state_[best])) best = next;
  }
  turn_ = (best + 1) % state_.size();
  ++state_[best].requests;
  state_[best].work += work;
  return best;
}

void Dispatch::answered(std::size_t replica, double work) {
  State& state = state_.at(replica);
  if (state.requests == 0) throw base::Error("a replica has answered more than it was given");
  --state.requests;
  // Adding and subtracting leaves rounding errors. So the work of an idle replica is set to exactly
  // 0, and all idle replicas compare equal.
  state.work = state.requests == 0 ? 0 : state.work - work;
}

std::size_t Ledger::index_of(std::uint64_t request) const {
  if (request < replica_of_.size()) return static_cast<std::size_t>(request);
  throw base::Error(fmt::format("request {} where there are {}", request, replica_of_.size()));
}

void Ledger::dispatched(std::uint64_t request, std::size_t replica) {
  std::optional<std::size_t>& taker = replica_of_[index_of(request)];
  if (taker) {
    throw base::Error(fmt::format("request {} goes to replica {}, and was given to replica {}",
                                  request, replica, *taker));
  }
  taker = replica;
}

void Ledger::answered(std::uint64_t request, std::size_t replica) {
  const std::size_t at = index_of(request);
  if (replica_of_[at] != replica) {
    throw base::Error(
        fmt::format("replica {} answers request {}, which it was not asked", replica, request));
  }
  if (is_answered_[at]) {
    throw base::Error(fmt::format("replica {} answers request {} twice", replica, request));
  }
  is_answered_[at] = true;
  ++answers_;
}

void Ledger::close() const {
  if (all_answered()) return;
  const auto first = std::ranges::find(is_answered_, false) - is_answered_.begin();
  throw base::Error(fmt::format("{} of {} requests were not answered, the first is request {}",
                                open(), is_answered_.size(), first));
}

}  // namespace isoscale::workloads::serve
