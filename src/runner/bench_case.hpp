// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/device_sampler.hpp"
#include "runner/measure.hpp"
#include "workloads/bench/bench.hpp"

/// Playing one case of a micro-benchmark until enough is known.
namespace isoscale::runner {

/// How long a case may take, and a wait for another rank in it (0 = for ever); what the device asks
/// of its plays.
struct CaseLimits {
  units::Seconds budget{}, timeout{};
  workloads::PlayBounds bounds{};
};

/// How a case ended on one rank.
enum class CaseEnd : std::uint8_t {
  complete,
  timed_out,      ///< this rank had no answer from another one
  peer_timed_out  ///< another rank had none
};

/// One rank's record of a case.
struct CaseRecord {
  CaseEnd end = CaseEnd::complete;  ///< otherwise there is nothing else
  double first_call = 0;            ///< seconds a call of the very first pass, slowest rank
  std::uint64_t times = 1;          ///< passes in each play
  std::vector<double> plays{};      ///< this rank's, seconds
  /// Plays that were late on some rank (see PlayTime) and played again; those that were late when
  /// this had been done too often, and stand among `plays`.
  std::uint64_t repeated_plays = 0, late_plays = 0;
  std::vector<double> call_times{};  ///< of single calls in traced passes, seconds, slowest rank
  /// [stream][traced pass]: from the stream's first start to its last end, this rank's seconds.
  std::vector<std::vector<double>> stream_times{};
  std::optional<units::Seconds> estimate{};   ///< of one pass, by the executor's library
  std::string arithmetic{};                   ///< how that library multiplies
  std::vector<machine::SampledSeries> gpu{};  ///< of this rank's GPU, during the plays
};

/// Passes in one play of a case, of which one takes `pass` on the slowest rank; at least 1.
[[nodiscard]] std::uint64_t passes_of_play(const workloads::Case& one, units::Seconds pass,
                                           const CaseLimits& limits);

/// Whether a case has rows about single streams: it is traced as often as it is played then.
enum class Streams : std::uint8_t { joined, apart };

/// What is played, on this rank.
struct CasePlay {
  executor::Session& session;  ///< whose setup has been played
  const workloads::Case& one;
  const program::Program& section;  ///< that is timed
  Streams streams = Streams::joined;
  std::vector<machine::Source> gpu{};  ///< what is sampled beside the timed plays
};

/// Collective over `active`. Each play starts from a barrier, after which ranks run free, and all
/// ranks make as many: six at least, unless they take several budgets; then until the interval
/// of the slowest rank's times is as narrow as `effort` asks, or `budget` is used up. A few traced
/// passes follow, for the times of single calls. When a rank times out all of them end there, and
/// the session must be abandoned.
[[nodiscard]] CaseRecord play_case(const CasePlay& what, const comm::Communicator& active,
                                   Share share, const Effort& effort, const CaseLimits& limits);

}  // namespace isoscale::runner
