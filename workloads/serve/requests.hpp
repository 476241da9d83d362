// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace isoscale::workloads::serve {

// Requests: when they come and how long their answers are, drawn before anything is played; which
// replica each goes to; and proof that each is answered once.

/// poisson: one by one, independent of each other. bursty: so many at the same moment, bursts
/// independent of each other.
enum class Process : std::uint8_t { poisson, bursty };

struct Arrivals {
  Process process = Process::poisson;
  double rate = 1;          ///< requests a second, the mean
  std::uint64_t burst = 1;  ///< requests of a burst; 1 of poisson
};

/// The first `count` times of arrival, seconds, ascending; a function of its arguments alone. Gaps
/// between bursts are exponential with mean burst / rate, the first one's too; so the number in any
/// stretch of T seconds has the mean rate x T and, over long ones, the variance rate x T x burst.
/// Times of one seed scale with 1 / rate: every rate sees the same pattern.
[[nodiscard]] std::vector<double> arrival_times(const Arrivals& arrivals, std::uint64_t count,
                                                std::uint64_t seed);

/// fixed: every answer has `output` tokens. uniform: 1 to `output`, each as likely.
enum class Lengths : std::uint8_t { fixed, uniform };

/// Tokens of each of `count` answers; a function of its arguments alone.
[[nodiscard]] std::vector<std::uint64_t> answer_lengths(Lengths lengths, std::uint64_t output,
                                                        std::uint64_t count, std::uint64_t seed);

/// round_robin: one after the other, whatever they do. shortest_queue: the fewest requests that are
/// not answered yet. least_loaded: the least work that is not answered yet. Of equals, the next one
/// in turn.
enum class Policy : std::uint8_t { round_robin, least_loaded, shortest_queue };

/// Throws base::Error for a name that does not exist.
[[nodiscard]] Policy parse_policy(std::string_view name);

class Dispatch {
 public:
  Dispatch(Policy policy, std::size_t replicas) : policy_(policy), state_(replicas) {}

  /// The replica that takes a request of so much work, which counts as its from now on.
  [[nodiscard]] std::size_t assign(double work);
  /// `replica` has answered a request of so much work.
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

/// Proof that no request is lost, and none answered twice.

class Ledger {
 public:
  explicit Ledger(std::size_t requests) : replica_of_(requests), is_answered_(requests) {}

  /// Throws base::Error when the request is unknown or has been dispatched before.
  void dispatched(std::uint64_t request, std::size_t replica);
  /// Throws base::Error when `replica` was not asked it, or it has been answered before.
  void answered(std::uint64_t request, std::size_t replica);

  [[nodiscard]] std::size_t open() const { return replica_of_.size() - answers_; }
  [[nodiscard]] bool all_answered() const { return open() == 0; }
  /// Throws base::Error that counts and names what was lost, unless each request was answered.
  void close() const;

 private:
  [[nodiscard]] std::size_t index_of(std::uint64_t request) const;

  std::vector<std::optional<std::size_t>> replica_of_;
  std::vector<bool> is_answered_;
  std::size_t answers_ = 0;
};

}  // namespace isoscale::workloads::serve
