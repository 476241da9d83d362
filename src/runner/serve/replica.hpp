// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "executor/executor.hpp"
#include "runner/watch/board.hpp"

/// A replica under a stream of requests: its first rank, the leader, takes requests and decides
/// what all of them play; the others follow.
namespace isoscale::runner::serve {

/// What this rank plays in its replica.
struct ReplicaPart {
  executor::Session& session;
  const comm::MessageQueue& point;    ///< among all ranks of the point
  const comm::MessageQueue& replica;  ///< among those of the replica; the leader is rank 0
  int ranks = 1;                      ///< of the replica
  std::vector<std::uint64_t> sizes;   ///< batch sizes, ascending; see workloads::serve::sizes_of
  std::uint64_t output = 1;           ///< tokens of an answer, at most
  Board* board = nullptr;             ///< where it rests while nobody asks; null: nowhere
};

/// On the leader, until the dispatcher (rank 0 of the point) says that all is answered. Requests
/// queue here; whenever the replica is free it takes those that wait, in order of arrival, as many
/// as the largest size holds. A request is answered when its last token is there, though its place
/// in the batch stays taken until the batch's longest answer ends. Returns what went wrong, "" when
/// nothing did: the dispatcher has been told then. What a play throws where other ranks may be
/// stuck in it is thrown on. `patience`: without any letter.
[[nodiscard]] std::string lead(const ReplicaPart& part, units::Seconds patience);

/// On the other ranks, until the leader says that there is no more. Returns what went wrong.
[[nodiscard]] std::string follow(const ReplicaPart& part, units::Seconds patience);

/// Seconds that batches take on this rank, each the median of a few plays that all ranks of the
/// replica make at once, after every program has been played once.
struct Pace {
  double prefill = 0, token = 0;
};
struct Paces {
  Pace one{}, full{};  ///< a batch of the smallest and of the largest size
};
[[nodiscard]] Paces warm_up(const ReplicaPart& part);

}  // namespace isoscale::runner::serve
