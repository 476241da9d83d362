// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "executor/executor.hpp"
#include "runner/microbench/microbench.hpp"
#include "runner/watch/progress.hpp"
#include "workloads/serve/requests.hpp"
#include "workloads/serve/trials.hpp"

/// Measures how replicas of a model serve requests. A dispatcher on rank 0 of the point sends each
/// request to a replica. The first rank of a replica, its leader, takes requests and decides what
/// all ranks of the replica play; the others follow.
namespace isoscale::runner::serve {

/// Collective over `place.active`: answers requests on the point's replicas, at the given rate or
/// at the rates that a search for the highest sustained one tries. Fills `data` on rank 0 of the
/// point, and its status on all. The results are rows: one for each rate, one for each rate and
/// replica, and one for each request of the given or the highest sustained rate. The point fails
/// unless every request was answered exactly once.
void run_serve(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data);

/// The requests of a trial and the replicas that answer them; the same on all ranks of the point.
struct Trial {
  std::vector<double> arrivals{};       ///< seconds after the begin, ascending
  std::vector<std::uint64_t> tokens{};  ///< of each answer
  std::vector<double> work{};           ///< of each, expected seconds
  workloads::serve::Policy policy = workloads::serve::Policy::round_robin;
  std::vector<int> leader_of_replica{};  ///< ranks of the point
  units::Seconds patience{};             ///< without an answer while one is due
};

/// The times when a replica played a request, on its leader's clock.
struct Played {
  units::Nanoseconds started{}, first{}, finished{};
};

/// The dispatcher's record of a trial.
struct Served {
  units::Nanoseconds begin{};  ///< on this rank's clock, which is the dispatcher's
  /// The outcomes lack the times that are in `played`.
  std::vector<workloads::serve::Outcome> outcomes{};
  std::vector<Played> played{};
  std::string problem{};  ///< "" when each request was answered once
};

/// Sends each request to a replica when it arrives, takes the answers, and tells all leaders of the
/// end, whatever happened. It sleeps in between, so that its thread takes next to no time from a
/// replica on the same core. Does not throw. `stop` ends it early. While no request is due,
/// `activity`, if there is one, notes that this rank is idle.
[[nodiscard]] Served dispatch(const comm::MessageQueue& mail, const Trial& trial,
                              const std::stop_token& stop, Activity* activity);

/// The part that this rank plays in its replica.
struct ReplicaPart {
  executor::Session& session;
  const comm::MessageQueue& point;    ///< among all ranks of the point
  const comm::MessageQueue& replica;  ///< among those of the replica; the leader is rank 0
  int ranks = 1;                      ///< of the replica
  std::vector<std::uint64_t> sizes;   ///< batch sizes, ascending; see workloads::serve::sizes_of
  std::uint64_t output = 1;           ///< tokens of an answer, at most
  Activity* activity = nullptr;       ///< notes idle times without requests; may be null
};

/// Runs a leader until the dispatcher (rank 0 of the point) says that all requests are answered.
/// Requests queue here. Whenever the replica is free, it takes those that wait, in order of
/// arrival, up to the largest batch size. A request is answered when its last token is complete,
/// but its place in the batch stays taken until the batch's longest answer ends. Returns the
/// problem, "" if there was none; the dispatcher has then been told of it. Rethrows what a play
/// threw if other ranks may be stuck in it. `patience` is the longest wait for a message.
[[nodiscard]] std::string lead(const ReplicaPart& part, units::Seconds patience);

/// Runs one of the other ranks until the leader ends it. Returns the problem, "" if there was none.
[[nodiscard]] std::string follow(const ReplicaPart& part, units::Seconds patience);

/// Seconds that batches take on this rank. Each is the median of a few plays that all ranks of the
/// replica make at once, after every program has been played once.
struct Pace {
  double prefill = 0, token = 0;
};
struct Paces {
  Pace one{}, full{};  ///< a batch of the smallest and of the largest size
};
[[nodiscard]] Paces warm_up(const ReplicaPart& part);

}  // namespace isoscale::runner::serve
