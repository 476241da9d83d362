// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

/// When requests come, and how long their answers are: drawn before anything is played.
namespace isoscale::workloads::serve {

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

}  // namespace isoscale::workloads::serve
