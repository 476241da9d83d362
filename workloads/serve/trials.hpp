// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace isoscale::workloads::serve {

// A trial plays requests at one rate. These functions summarise its requests and search for the
// highest rate that is sustained; all are pure.

/// One request; times are seconds after the trial's begin, on the dispatcher's clock.
struct Outcome {
  double arrival = 0;     ///< as drawn
  double dispatched = 0;  ///< sent to its replica
  double started = 0;     ///< its batch was taken
  double first = 0;       ///< its first token
  double finished = 0;    ///< its last token
  std::size_t replica = 0;
  std::uint64_t batch = 0;   ///< number of its batch on its replica
  std::uint64_t filled = 1;  ///< requests in that batch
  std::uint64_t tokens = 1;

  [[nodiscard]] double latency() const { return finished - arrival; }
};

/// The use of a replica until the last answer of the trial.
struct ReplicaUse {
  std::uint64_t requests = 0, batches = 0;
  double busy = 0;         ///< seconds with a batch
  double utilisation = 0;  ///< busy over the trial's time
};

/// Quantiles are samples: the smallest that is not exceeded by that percentage of samples. They are
/// absent with too few samples to be meaningful: the 90th below 10 requests, the 99th below 100.
struct Quantiles {
  std::optional<double> median{}, p90{}, p99{}, max{};
};
[[nodiscard]] Quantiles quantiles_of(std::vector<double> values);

struct Summary {
  double time = 0;       ///< from the begin to the last answer, seconds
  double offered = 0;    ///< requests over the last arrival, 1/s
  double achieved = 0;   ///< answers over `time`, 1/s
  Quantiles latency{};   ///< arrival to last token
  Quantiles ttft{};      ///< arrival to first token
  Quantiles queueing{};  ///< arrival to the batch's start
  Quantiles tpot{};      ///< from token to token, of requests with two or more
  std::vector<ReplicaUse> replicas{};
  double imbalance = 1;       ///< most busy over mean busy
  std::uint64_t backlog = 0;  ///< requests not answered at the last arrival
  /// The mean number of unanswered requests at arrivals of the last quarter, less that at arrivals
  /// of the first quarter.
  double backlog_rise = 0;
  /// The share of arriving requests that pile up: the rise over the arrivals in between. It is
  /// around 0 if all are answered in time, else 1 - capacity / offered.
  double backlog_growth = 0;
};
/// Summarises all requests of a trial, in order of arrival; at least one.
[[nodiscard]] Summary summarise(std::span<const Outcome> outcomes, std::size_t replicas);

/// The largest backlog_growth that counts as sustained: one in 20 requests piles up.
inline constexpr double most_growth = 0.05;
/// True if a trial's rate could not be sustained: its backlog grew by more than most_growth and by
/// more requests than the replicas took at once, or more than one request in 100 took longer than
/// `slo` seconds, if there is one.
[[nodiscard]] bool is_saturated(const Summary& summary, std::span<const Outcome> outcomes,
                                std::optional<double> slo);

/// Searches for the highest rate that a system sustains, by trying some; pure.

/// Doubles the rate until one is too high (or halves it until one is not), then tries the geometric
/// mean of the two until they are within 5% of each other.
class RateSearch {
 public:
  explicit RateSearch(double first) : next_(first) {}

  /// Returns the rate to try next; absent when the search is over.
  [[nodiscard]] std::optional<double> next() const { return next_; }
  enum class Outcome : unsigned char { sustained, saturated };
  /// Reports the outcome of next().
  void tell(Outcome outcome);
  /// Returns the highest rate that was sustained; absent while none was.
  [[nodiscard]] std::optional<double> sustained() const { return low_; }

  static constexpr double resolution = 1.05;
  static constexpr int most_trials = 16;

 private:
  std::optional<double> next_;
  std::optional<double> low_, high_;
  int trials_ = 0;
};

}  // namespace isoscale::workloads::serve
