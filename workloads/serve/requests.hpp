// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace isoscale::workloads::serve {

// Requests: their arrival times and answer lengths are drawn before anything is played, a policy
// assigns them to replicas, and a ledger proves that each is answered once.

/// poisson: one by one, independently. bursty: a number at the same moment, with bursts independent
/// of each other.
enum class Process : std::uint8_t { poisson, bursty };

struct Arrivals {
  Process process = Process::poisson;
  double rate = 1;          ///< requests a second, the mean
  std::uint64_t burst = 1;  ///< requests of a burst; 1 of poisson
};

/// Returns the first `count` arrival times, in seconds, ascending; a function of its arguments
/// alone. Gaps between bursts are exponential with mean burst / rate, also the first one. So the
/// number of arrivals in T seconds has the mean rate x T and, if T is long, the variance rate x T x
/// burst. Times of one seed scale with 1 / rate: every rate has the same pattern.
[[nodiscard]] std::vector<double> arrival_times(const Arrivals& arrivals, std::uint64_t count,
                                                std::uint64_t seed);

/// fixed: every answer has `output` tokens. uniform: 1 to `output` tokens, each equally likely.
enum class Lengths : std::uint8_t { fixed, uniform };

/// Returns the tokens of each of `count` answers; a function of its arguments alone.
[[nodiscard]] std::vector<std::uint64_t> answer_lengths(Lengths lengths, std::uint64_t output,
                                                        std::uint64_t count, std::uint64_t seed);

/// round_robin: one replica after the other. shortest_queue: the replica with the fewest unanswered
/// requests. least_loaded: the replica with the least unanswered work. Of equal replicas, the next
/// one in turn.
enum class Policy : std::uint8_t { round_robin, least_loaded, shortest_queue };

/// Reads a policy. Throws base::Error for a name that does not exist.
[[nodiscard]] Policy parse_policy(std::string_view name);

class Dispatch {
 public:
  Dispatch(Policy policy, std::size_t replicas) : policy_(policy), state_(replicas) {}

  /// Returns the replica that takes a request of this much work, and counts the work as its own.
  [[nodiscard]] std::size_t assign(double work);
  /// Notes that `replica` has answered a request of this much work.
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

/// Proves that no request is lost, and none answered twice.

class Ledger {
 public:
  explicit Ledger(std::size_t requests) : replica_of_(requests), is_answered_(requests) {}

  /// Notes a request as sent. Throws base::Error if it is unknown or was dispatched before.
  void dispatched(std::uint64_t request, std::size_t replica);
  /// Notes an answer. Throws base::Error if the request was not sent to `replica`, or was answered
  /// before.
  void answered(std::uint64_t request, std::size_t replica);

  [[nodiscard]] std::size_t open() const { return replica_of_.size() - answers_; }
  [[nodiscard]] bool all_answered() const { return open() == 0; }
  /// Throws base::Error that counts and names the lost requests, unless each request was answered.
  void close() const;

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t request) const;

  std::vector<std::optional<std::size_t>> replica_of_;
  std::vector<bool> is_answered_;
  std::size_t answers_ = 0;
};

}  // namespace isoscale::workloads::serve
