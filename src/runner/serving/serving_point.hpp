// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "executor/executor.hpp"
#include "runner/measure/point_context.hpp"
#include "runner/plan/plan.hpp"
#include "runner/watch/activity_and_progress_line.hpp"
#include "workloads/serve/arrivals_and_rate_search.hpp"

/// Measures how replicas of a model serve requests. A dispatcher, on rank 0 of the point, sends
/// each request to a replica. The first rank of each replica is its leader: it receives requests,
/// and decides which programs the replica plays. The other ranks of the replica, its followers,
/// play the same programs.
namespace isoscale::runner::serving {

/// Collective over `point.active`: serves requests with the replicas of a point. Requests arrive at
/// the rate that the user gives. If none is given, several rates are tried, one after another, to
/// find the highest rate that the replicas sustain. The results are rows: one for each rate, one
/// for each replica at each rate, and one for each of the first 1000 requests at one of the rates:
/// the given one, or the highest that was sustained, or the last if none was sustained. The point
/// fails unless every request was answered exactly once.
void run_serve(const measure::MeasuredPoint& point);

/// One trial, the same on all ranks of the point: the requests, and the replicas that serve them.
struct Trial {
  /// The time when each request arrives, in seconds since the start of the trial, ascending.
  std::vector<double> arrivals{};
  std::vector<std::uint64_t> tokens{};  ///< number of tokens in the answer to each request
  std::vector<double> work{};           ///< seconds that each request is expected to take
  workloads::serve::Policy policy = workloads::serve::Policy::round_robin;
  std::vector<int> leader_of_replica{};  ///< for each replica, the rank of the point that leads it
  units::Seconds patience{};  ///< the longest time without any answer while an answer is due
};

/// The times of a request's start, first token and end, by the clock of the replica's leader.
struct Played {
  units::Nanoseconds started{}, first{}, finished{};
};

/// The record of a trial that the dispatcher makes.
struct Served {
  units::Nanoseconds begin{};  ///< time 0 of Trial::arrivals, on the dispatcher's clock
  /// The result of each request; its times on the replica are in `played` instead.
  std::vector<workloads::serve::Outcome> outcomes{};
  std::vector<Played> played{};
  std::string problem{};  ///< "" if every request was answered exactly once
};

/// Runs the dispatcher: sends each request to a replica when it arrives, receives the answers, and
/// tells all leaders when the trial has ended, even after an error. It sleeps while there is
/// nothing to do, so that it takes almost no time from a replica on the same core. It does not
/// throw. `stop` makes it end early. While no answer is due, it notes in `activity`, which may be
/// null, that this rank is idle.
[[nodiscard]] Served dispatch(const comm::MessageQueue& mail, const Trial& trial,
                              const std::stop_token& stop, watch::Activity* activity);

/// The objects and numbers that a rank needs to play its part in a replica.
struct ReplicaPart {
  executor::Session& session;
  const comm::MessageQueue& point;  ///< queue for messages between all ranks of the point
  /// Queue for messages between the ranks of the replica; its rank 0 is the leader.
  const comm::MessageQueue& replica;
  int ranks = 1;  ///< number of ranks of the replica
  /// The sizes of batches for which the replica has programs, ascending.
  std::vector<std::uint64_t> sizes;
  std::uint64_t output = 1;             ///< number of tokens in the longest answer
  watch::Activity* activity = nullptr;  ///< notes when this rank is idle; may be null
};

/// Runs a leader until the dispatcher (rank 0 of the point) says that the trial has ended. Requests
/// that it receives wait in a queue. Whenever the replica is free, the leader takes requests from
/// the queue in the order of arrival, up to the largest batch size. A request is answered when its
/// last token is complete, but its slot in the batch stays occupied until the longest answer of the
/// batch is complete. Returns a problem, which it has also reported to the dispatcher; "" if there
/// was none. If a play fails in which other ranks of the replica may be stuck, it throws the error.
/// `patience` is the longest wait for a message.
[[nodiscard]] std::string lead(const ReplicaPart& part, units::Seconds patience);

/// Runs a follower until its leader tells it to end. Returns a problem; "" if there was none. If a
/// play fails, it throws the error. `patience` is the longest wait for a message.
[[nodiscard]] std::string follow(const ReplicaPart& part, units::Seconds patience);

/// The seconds that a batch takes on this rank: `prefill` until each answer has its first token,
/// then `token` for each further token. Both are medians of a few plays, which all ranks of the
/// replica make at the same time. Before that, each program has been played once.
struct Pace {
  double prefill = 0, token = 0;
};
struct Paces {
  Pace one{}, full{};  ///< for batches of the smallest and of the largest size
};
[[nodiscard]] Paces warm_up(const ReplicaPart& part);

}  // namespace isoscale::runner::serving
