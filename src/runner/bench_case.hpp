// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "comm/world.hpp"
#include "executor/executor.hpp"
#include "runner/measure.hpp"
#include "workloads/bench/bench.hpp"

/// Playing one case of a micro-benchmark until enough is known.
namespace isoscale::runner {

/// One rank's record of a case.
struct CaseRecord {
  double first_call = 0;           ///< seconds a call of the very first pass, slowest rank
  std::uint64_t times = 1;         ///< passes in each play
  std::vector<double> plays;       ///< this rank's, seconds
  std::vector<double> call_times;  ///< of single calls in traced passes, seconds, slowest rank
};

/// Collective over `active`. Each play starts from a barrier, after which ranks run free, and all
/// ranks make as many: six at least, if there is time for more than one; then until the interval
/// of the slowest rank's times is as narrow as `effort` asks, or `budget` is used up. A few traced
/// passes follow, for the times of single calls. Setup has been played.
[[nodiscard]] CaseRecord play_case(executor::Session& session, const workloads::Case& one,
                                   const comm::Communicator& active, Share share,
                                   const Effort& effort, units::Seconds budget);

}  // namespace isoscale::runner
