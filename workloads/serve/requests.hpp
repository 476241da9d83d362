// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace isoscale::workloads::serve {

// The arrival times and answer lengths of requests are drawn before the first one is sent. A policy
// assigns requests to replicas, and a ledger checks that each is answered exactly once.

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

/// Returns the number of tokens of each of `count` answers. The numbers depend only on the
/// arguments.
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
  [[nodiscard]] bool is_better(const State& one, const State& other) const;

  Policy policy_;
  std::vector<State> state_;
  std::size_t turn_ = 0;
};

/// Checks that no request is lost and that none is answered twice.
class Ledger {
 public:
  explicit Ledger(std::size_t requests) : replica_of_(requests), is_answered_(requests) {}

  /// Notes that a request was sent to a replica. Throws base::Error if it is unknown or was sent
  /// before.
  void dispatched(std::uint64_t request, std::size_t replica);
  /// Notes that a request was answered. Throws base::Error if it was not sent to `replica`, or was
  /// answered before.
  void answered(std::uint64_t request, std::size_t replica);

  [[nodiscard]] std::size_t open() const { return replica_of_.size() - answers_; }
  [[nodiscard]] bool all_answered() const { return open() == 0; }
  /// Throws base::Error, with the number of unanswered requests and the first of them, unless all
  /// requests were answered.
  void close() const;

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t request) const;

  std::vector<std::optional<std::size_t>> replica_of_;
  std::vector<bool> is_answered_;
  std::size_t answers_ = 0;
};

}  // namespace isoscale::workloads::serve
