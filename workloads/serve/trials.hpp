// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace isoscale::workloads::serve {

// A trial sends requests at one rate. The functions below summarise the requests of a trial, and
// search for the highest rate that can be sustained. All of them are pure functions.

/// The times of one request, in seconds since the trial began, on the dispatcher's clock.
struct Outcome {
  double arrival = 0;     ///< arrival time as drawn
  double dispatched = 0;  ///< when it was sent to its replica
  double started = 0;     ///< when its batch began
  double first = 0;       ///< when its first token was complete
  double finished = 0;    ///< when its last token was complete
  std::size_t replica = 0;
  std::uint64_t batch = 0;   ///< index of its batch among those of its replica
  std::uint64_t filled = 1;  ///< number of requests in that batch
  std::uint64_t tokens = 1;

  [[nodiscard]] double latency() const { return finished - arrival; }
};

/// The use of a replica from the beginning of a trial to the trial's last answer.
struct ReplicaUse {
  std::uint64_t requests = 0, batches = 0;
  double busy = 0;         ///< seconds in which it ran a batch
  double utilisation = 0;  ///< busy divided by the trial's time
};

/// Quantiles of samples. The p-th percentile is the smallest sample x such that at least p% of the
/// samples are x or less. The 90th percentile is absent for fewer than 10 samples, the 99th for
/// fewer than 100, and all are absent for none.
struct Quantiles {
  std::optional<double> median{}, p90{}, p99{}, max{};
};

struct Summary {
  double time = 0;       ///< seconds from the beginning to the last answer
  double offered = 0;    ///< requests per second until the last arrival
  double achieved = 0;   ///< answers per second over `time`
  Quantiles latency{};   ///< seconds from arrival to last token
  Quantiles ttft{};      ///< seconds from arrival to first token
  Quantiles queueing{};  ///< seconds from arrival to the beginning of the batch
  Quantiles tpot{};      ///< seconds per token after the first, of answers with two or more tokens
  std::vector<ReplicaUse> replicas{};
  double imbalance = 1;       ///< busy time of the busiest replica, divided by the mean
  std::uint64_t backlog = 0;  ///< unanswered requests at the last arrival
  /// The mean number of unanswered requests at the last quarter of all arrivals, minus the mean at
  /// the first quarter of them (quarters by number, not by time); 0 for fewer than 4 arrivals.
  double backlog_rise = 0;
  /// The share of arriving requests that pile up. It is backlog_rise divided by the number of
  /// arrivals from the middle of the first quarter of arrivals to the middle of the last quarter.
  /// It is about 0 if all requests are answered in time, else about 1 - capacity / offered, where
  /// the capacity is the highest rate at which requests can be answered.
  double backlog_growth = 0;
};
/// Summarises all requests of a trial, in order of arrival; there must be at least one.
[[nodiscard]] Summary summarise(std::span<const Outcome> outcomes, std::size_t replicas);

/// The largest backlog_growth at which a rate counts as sustained: one request in 20 piles up.
inline constexpr double most_growth = 0.05;
/// True if a trial's rate could not be sustained. Either its backlog_growth is above most_growth
/// and its backlog_rise above the number of requests that all replicas together take at a time, on
/// average, or there is an `slo` and more than one request in 100 took longer than `slo` seconds.
[[nodiscard]] bool is_saturated(const Summary& summary, std::span<const Outcome> outcomes,
                                std::optional<double> slo);

/// Searches for the highest rate that a system sustains. The search doubles the rate until one is
/// not sustained, or halves it until one is sustained. It then tries the geometric mean of the
/// highest sustained and the lowest unsustained rate, until they are within 5% of each other. It
/// ends in any case when `most_trials` rates were tried.
class RateSearch {
 public:
  explicit RateSearch(double first) : next_(first) {}

  /// Returns the next rate to try; absent when the search is over.
  [[nodiscard]] std::optional<double> next() const { return next_; }
  enum class Outcome : unsigned char { sustained, saturated };
  /// Reports whether the rate of next() was sustained.
  void tell(Outcome outcome);
  /// Returns the highest rate that was sustained; absent if none was so far.
  [[nodiscard]] std::optional<double> sustained() const { return low_; }

  static constexpr double resolution = 1.05;
  static constexpr int most_trials = 16;

 private:
  std::optional<double> next_;
  std::optional<double> low_, high_;
  int trials_ = 0;
};

}  // namespace isoscale::workloads::serve
