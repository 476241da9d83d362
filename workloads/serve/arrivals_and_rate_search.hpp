// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Trials of serving, which send requests at one rate: when requests arrive, which replica gets
/// each, the results, and the search for the highest rate that can be sustained.
namespace isoscale::workloads::serve {

// The arrival times and answer lengths of requests are drawn before the first one is sent. A policy
// assigns requests to replicas.

/// The arrival process. poisson: requests arrive one by one, independently. bursty: several arrive
/// at the same moment; bursts are independent of each other.
enum class Process : std::uint8_t { poisson, bursty };

struct Arrivals {
  Process process = Process::poisson;
  double rate = 1;          ///< mean number of requests per second
  std::uint64_t burst = 1;  ///< requests in a burst; 1 for poisson
};

/// Returns the first `count` arrival times, in seconds, ascending. They depend only on the
/// arguments. The gaps between bursts, and the one before the first burst, are exponential with
/// mean burst / rate. So the number of arrivals in T seconds has the mean rate x T and, for long T,
/// the variance rate x T x burst. Times of one seed scale with 1 / rate: the pattern is the same at
/// every rate.
[[nodiscard]] std::vector<double> arrival_times(const Arrivals& arrivals, std::uint64_t count,
                                                std::uint64_t seed);

/// Lengths of answers. fixed: every answer has `output` tokens. uniform: 1 to `output` tokens, all
/// equally likely.
enum class Lengths : std::uint8_t { fixed, uniform };

/// Returns the number of tokens of each of `count` answers. They depend only on the arguments.
[[nodiscard]] std::vector<std::uint64_t> answer_lengths(Lengths lengths, std::uint64_t output,
                                                        std::uint64_t count, std::uint64_t seed);

/// The rule that chooses a replica for a request. round_robin: replicas take turns. shortest_queue:
/// the replica with the fewest unanswered requests. least_loaded: the replica whose unanswered
/// requests have the least expected work. If several are equal, the next one in turn is chosen.
enum class Policy : std::uint8_t { round_robin, least_loaded, shortest_queue };

class Dispatch {
 public:
  Dispatch(Policy policy, std::size_t replicas) : policy_(policy), state_(replicas) {}

  /// Returns the replica for a request with this much expected work (in any unit), and adds the
  /// work to that replica.
  [[nodiscard]] std::size_t assign(double work);
  /// Subtracts the work of a request that `replica` has answered.
  void answered(std::size_t replica, double work);

 private:
  struct State {
    std::uint64_t requests = 0;
    double work = 0;
  };
  [[nodiscard]] bool is_better(const State& one, const State& other) const {
    if (policy_ == Policy::least_loaded) return one.work < other.work;
    return policy_ == Policy::shortest_queue && one.requests < other.requests;
  }

  Policy policy_;
  std::vector<State> state_;
  std::size_t turn_ = 0;
};

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
/// fewer than 100, and all are absent without samples.
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
