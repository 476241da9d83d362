// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "executor/executor.hpp"
#include "runner/measure/point.hpp"
#include "runner/plan/plan.hpp"
#include "runner/watch/progress.hpp"
#include "workloads/serve/requests.hpp"
#include "workloads/serve/trials.hpp"

/// Measures how replicas of a model serve requests. A dispatcher on rank 0 of the point sends each
/// request to a replica. The first rank of a replica, its leader, receives requests and decides
/// which programs all ranks of the replica play; its other ranks, the followers, play these
/// programs.
namespace isoscale::runner::serving {

/// Collective over `point.active`: answers requests on the replicas of a point. Requests arrive at
/// the given rate. If no rate is given, they arrive at several rates, one after another, to find
/// the highest rate that the replicas sustain. The results are rows: one for each rate, one for
/// each rate and replica, and one for each of the first 1000 requests at the given or the highest
/// sustained rate. The point fails unless every request was answered exactly once.
void run_serve(const measure::MeasuredPoint& point);

/// The requests of a trial and the replicas that answer them. A trial is the same on all ranks of
/// the point.
struct Trial {
  std::vector<double> arrivals{};       ///< seconds since the begin, ascending
  std::vector<std::uint64_t> tokens{};  ///< number of tokens in the answer to each request
  std::vector<double> work{};           ///< expected seconds for each request
  workloads::serve::Policy policy = workloads::serve::Policy::round_robin;
  std::vector<int> leader_of_replica{};  ///< rank of the point, for each replica
  units::Seconds patience{};             ///< longest time without an answer while one is due
};

/// The times of a request on its replica, by the clock of the leader.
struct Played {
  units::Nanoseconds started{}, first{}, finished{};
};

/// The dispatcher's results of a trial.
struct Served {
  units::Nanoseconds begin{};  ///< start of the trial, on the dispatcher's clock
  /// The results for each request, without the times that are in `played`.
  std::vector<workloads::serve::Outcome> outcomes{};
  std::vector<Played> played{};
  std::string problem{};  ///< "" if each request was answered exactly once
};

/// Runs the dispatcher: sends each request to a replica when it arrives, receives the answers, and
/// tells all leaders when the trial ends, also after an error. It sleeps while there is nothing to
/// do, so that its thread takes almost no time from a replica on the same core. Does not throw.
/// `stop` ends it early. While no request is due, it notes in `activity`, which may be null, that
/// this rank is idle.
[[nodiscard]] Served dispatch(const comm::MessageQueue& mail, const Trial& trial,
                              const std::stop_token& stop, watch::Activity* activity);

/// The role of this rank in its replica.
struct ReplicaPart {
  executor::Session& session;
  const comm::MessageQueue& point;      ///< queue of all ranks of the point
  const comm::MessageQueue& replica;    ///< queue of the replica's ranks; the leader is rank 0
  int ranks = 1;                        ///< number of ranks of the replica
  std::vector<std::uint64_t> sizes;     ///< batch sizes, ascending; see workloads::serve::sizes_of
  std::uint64_t output = 1;             ///< tokens of the longest answer
  watch::Activity* activity = nullptr;  ///< notes idle times; may be null
};

/// Runs a leader until the dispatcher (rank 0 of the point) says that all requests are answered.
/// Received requests wait in a queue. Whenever the replica is free, it takes requests from the
/// queue in order of arrival, up to the largest batch size. A request is answered when its last
/// token is complete, but its place in the batch remains occupied until the longest answer of the
/// batch is complete. Returns a problem, of which the dispatcher has been told; "" if there was
/// none. Rethrows an error of a play if other ranks of the replica may be stuck in that play.
/// `patience` is the longest wait for a message.
[[nodiscard]] std::string lead(const ReplicaPart& part, units::Seconds patience);

/// Runs a follower until its leader ends it. Returns a problem; "" if there was none.
[[nodiscard]] std::string follow(const ReplicaPart& part, units::Seconds patience);

/// The seconds that a batch takes on this rank: for `prefill`, which gives the first token of each
/// answer, and for each further token. Both are medians of a few plays, which all ranks of the
/// replica make at the same time, after each program has been played once.
struct Pace {
  double prefill = 0, token = 0;
};
struct Paces {
  Pace one{}, full{};  ///< for batches of the smallest and of the largest size
};
[[nodiscard]] Paces warm_up(const ReplicaPart& part);

}  // namespace isoscale::runner::serving
