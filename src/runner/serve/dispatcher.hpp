// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "runner/watch/board.hpp"
#include "workloads/serve/requests.hpp"
#include "workloads/serve/trials.hpp"

namespace isoscale::runner::serve {

/// What is asked, and of whom; alike on all ranks of the point.
struct Trial {
  std::vector<double> arrivals{};       ///< seconds after the begin, ascending
  std::vector<std::uint64_t> tokens{};  ///< of each answer
  std::vector<double> work{};           ///< of each, expected seconds
  workloads::serve::Policy policy = workloads::serve::Policy::round_robin;
  std::vector<int> leader_of_replica{};  ///< ranks of the point
  units::Seconds patience{};             ///< without an answer while one is due
};

/// When replicas played a request, each on its leader's clock.
struct Played {
  units::Nanoseconds started{}, first{}, finished{};
};

struct Served {
  units::Nanoseconds begin{};  ///< on this rank's clock, which is the dispatcher's
  /// Without the times that `played` has.
  std::vector<workloads::serve::Outcome> outcomes{};
  std::vector<Played> played{};
  std::string problem{};  ///< "" when each request was answered once
};

/// Sends each request to a replica when it arrives, takes the answers, and tells all leaders of the
/// end, whatever happened. Between looks it sleeps: the thread that calls it takes next to nothing
/// from a replica on the same core. Does not throw. `stop` ends it early. While no request is due,
/// this rank rests on `board`, if there is one.
[[nodiscard]] Served dispatch(const comm::MessageQueue& mail, const Trial& trial,
                              const std::stop_token& stop, Board* board);

}  // namespace isoscale::runner::serve
