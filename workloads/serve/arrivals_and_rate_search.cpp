// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/serve/arrivals_and_rate_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::serve {

namespace {

/// Returns element `index` of a stream of random numbers, uniform in (0, 1].
double uniform(std::uint64_t key, std::uint64_t index) {
  constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
  constexpr double unit = 0x1p-53;
  const std::uint64_t word = program::scatter_bits(program::fill_origin(key) + index * step);
  return static_cast<double>((word >> 11U) + 1) * unit;
}

/// Returns the smallest value such that at least `percent` % of the values are not larger; absent
/// if there are fewer than `fewest` values.
std::optional<double> at_percent(std::span<const double> sorted, std::size_t percent,
                                 std::size_t fewest) {
  if (sorted.size() < fewest) return std::nullopt;
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

template <class Value>
Quantiles quantiles_of(std::span<const Outcome> outcomes, const Value& value) {
  std::vector<double> values;
  for (const Outcome& one : outcomes) {
    if (const std::optional<double> known = value(one)) values.push_back(*known);
  }
  std::ranges::sort(values);
  return {.median = at_percent(values, 50, 1),
          .p90 = at_percent(values, 90, 10),
          .p99 = at_percent(values, 99, 100),
          .max = at_percent(values, 100, 1)};
}

std::vector<ReplicaUse> uses_of(std::span<const Outcome> outcomes, std::size_t replicas,
                                double time) {
  std::vector<ReplicaUse> uses(replicas);
  std::map<std::pair<std::size_t, std::uint64_t>, double> time_of_batch;
  for (const Outcome& one : outcomes) {
    ++uses.at(one.replica).requests;
    double& longest = time_of_batch[{one.replica, one.batch}];
    longest = std::max(longest, one.finished - one.started);
  }
  for (const auto& [batch, seconds] : time_of_batch) {
    ++uses[batch.first].batches;
    uses[batch.first].busy += seconds;
  }
  for (ReplicaUse& use : uses) use.utilisation = time > 0 ? use.busy / time : 0;
  return uses;
}

double imbalance_of(std::span<const ReplicaUse> uses) {
  double sum = 0, most = 0;
  for (const ReplicaUse& use : uses) {
    sum += use.busy;
    most = std::max(most, use.busy);
  }
  return sum > 0 ? most * static_cast<double>(uses.size()) / sum : 1;
}

/// Returns, for each arrival, the number of unanswered requests at that moment, including the
/// arriving one.
std::vector<double> backlogs_of(std::span<const Outcome> outcomes) {
  std::vector<double> finished;
  for (const Outcome& one : outcomes) finished.push_back(one.finished);
  std::ranges::sort(finished);
  std::vector<double> backlogs;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto answered = std::ranges::upper_bound(finished, outcomes[i].arrival);
    backlogs.push_back(static_cast<double>(i + 1) -
                       static_cast<double>(answered - finished.begin()));
  }
  return backlogs;
}

void put_growth(const std::vector<double>& backlogs, Summary& into) {
  const std::size_t quarter = backlogs.size() / 4;
  if (quarter == 0) return;
  const auto sum = [&](std::size_t begin) {
    const auto first = backlogs.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(quarter), 0.0);
  };
  const auto parts = static_cast<double>(quarter);
  into.backlog_rise = (sum(backlogs.size() - quarter) - sum(0)) / parts;
  into.backlog_growth = into.backlog_rise / static_cast<double>(backlogs.size() - quarter);
}

/// Returns how many requests all replicas take at a time: mean batch size x number of replicas.
double taken_at_once(std::span<const ReplicaUse> uses) {
  std::uint64_t requests = 0, batches = 0;
  for (const ReplicaUse& use : uses) {
    requests += use.requests;
    batches += use.batches;
  }
  if (batches == 0) return 0;
  return static_cast<double>(requests * uses.size()) / static_cast<double>(batches);
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

Summary summarise(std::span<const Outcome> outcomes, std::size_t replicas) {
  if (outcomes.empty()) throw base::Error("a trial without requests says nothing");
  const auto requests = static_cast<double>(outcomes.size());
  Summary result;
  result.time = std::ranges::max_element(outcomes, {}, &Outcome::finished)->finished;
  const double last = outcomes.back().arrival;
  result.offered = last > 0 ? requests / last : 0;
  result.achieved = result.time > 0 ? requests / result.time : 0;
  using Value = std::optional<double>;
  result.latency = quantiles_of(outcomes, [](const Outcome& o) -> Value { return o.latency(); });
  result.ttft =
      quantiles_of(outcomes, [](const Outcome& o) -> Value { return o.first - o.arrival; });
  result.queueing =
      quantiles_of(outcomes, [](const Outcome& o) -> Value { return o.started - o.arrival; });
  result.tpot = quantiles_of(outcomes, [](const Outcome& o) -> Value {
    if (o.tokens < 2) return std::nullopt;
    return (o.finished - o.first) / static_cast<double>(o.tokens - 1);
  });
  result.replicas = uses_of(outcomes, replicas, result.time);
  result.imbalance = imbalance_of(result.replicas);
  const std::vector<double> backlogs = backlogs_of(outcomes);
  result.backlog = static_cast<std::uint64_t>(std::max(0.0, backlogs.back()));
  put_growth(backlogs, result);
  return result;
}

bool is_saturated(const Summary& summary, std::span<const Outcome> outcomes,
                  std::optional<double> slo) {
  const bool grew = summary.backlog_growth > most_growth &&
                    summary.backlog_rise > taken_at_once(summary.replicas);
  if (grew) return true;
  if (!slo) return false;
  const auto late =
      std::ranges::count_if(outcomes, [&](const Outcome& one) { return one.latency() > *slo; });
  return static_cast<std::size_t>(late) > outcomes.size() / 100;
}

void RateSearch::tell(Outcome outcome) {
  if (!next_) return;
  (outcome == Outcome::sustained ? low_ : high_) = *next_;
  ++trials_;
  if (!high_) {
    next_ = 2 * *low_;
  } else if (!low_) {
    next_ = *high_ / 2;
  } else {
    next_ = std::sqrt(*low_ * *high_);
  }
  const bool is_found = low_ && high_ && *high_ <= resolution * *low_;
  if (is_found || trials_ >= most_trials) next_.reset();
}

}  // namespace isoscale::workloads::serve
