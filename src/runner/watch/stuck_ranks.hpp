// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "runner/watch/rank_state.hpp"
#include "units/quantity.hpp"

/// Finds the ranks that hold up a stuck job, and writes down what was found.
namespace isoscale::runner {

struct Culprit {
  int rank = 0;
  std::string what{};  ///< "never answered", "failed: ...", "is in gemm, forward, layer 3"
};

struct Hang {
  std::vector<int> silent{};        ///< ranks that never answered, ascending
  std::vector<Culprit> culprits{};  ///< by rank; empty if none can be named
  /// The first call in which some ranks have arrived and others have not; "" if there is none.
  std::string first_op{};
  std::vector<int> waiting{}, absent{};  ///< ranks, at that call

  /// Returns one sentence: "rank 2 did not arrive at all_reduce ... (never answered)".
  [[nodiscard]] std::string sentence() const;
};

/// Finds the culprits of a hang from the states of the ranks that answered, in a launch of `ranks`
/// ranks. If ranks wait for each other in a chain, only the last one is a culprit.
[[nodiscard]] Hang find_hang(const std::vector<RankState>& states, int ranks);

/// Asks every rank for its state, without a collective call, since any rank may be gone. Every rank
/// sends its state to the few lowest ranks, and each of these asks all others. The lowest of them
/// that answers is the leader: it collects the states and sends its finding to everybody.
class RankPoll {
 public:
  /// Collective over `world`.
  explicit RankPoll(const comm::Communicator& world)
      : mail_(world), rank_(world.rank()), size_(world.size()) {}
  /// After a poll, messages to ranks that did not receive them are still under way.
  ~RankPoll() {
    if (number_ > 0) abandon();
  }
  RankPoll(const RankPoll&) = delete;
  RankPoll& operator=(const RankPoll&) = delete;

  /// True once another rank has begun a poll.
  [[nodiscard]] bool is_requested();

  /// The outcome of a poll.
  struct Result {
    /// On the leader, the states of the ranks that answered; if there was no leader, this rank's
    /// state.
    std::vector<RankState> states{};
    Hang hang{};      ///< on the leader
    int leader = -1;  ///< -1: none was heard
    std::string sentence{};
    bool calm = false;     ///< no rank is missing, and some rank moves
    bool goes_on = false;  ///< all answered, and all can give up their work
  };
  /// Begins a poll, or answers that of another rank; ends within 4 seconds. A rank counts as moving
  /// if it has stood still for less than half of `timeout`; if only ranks with nothing to do have
  /// waited for `timeout`, for less than all of it. Calls `meanwhile` every few milliseconds.
  [[nodiscard]] Result poll(const RankState& own, units::Seconds timeout,
                            const std::function<void()>& meanwhile);

  void abandon() noexcept { mail_.abandon(); }

 private:
  [[nodiscard]] bool may_lead() const { return rank_ < leaders(); }
  [[nodiscard]] int leaders() const;
  void ask_all();
  void collect(std::vector<RankState>& states);
  [[nodiscard]] Result lead(std::vector<RankState> states, units::Seconds timeout);
  void post(int to, int box, const std::string& text);
  [[nodiscard]] std::optional<std::string> take(int box, int* from = nullptr);
  [[nodiscard]] std::optional<Result> told();

  comm::MessageQueue mail_;
  int rank_, size_;
  bool asked_ = false;
  int number_ = 0;  ///< of this poll: messages of earlier ones may still arrive
};

/// Identifies a hang of a launch.
struct HangOf {
  std::filesystem::path run_file{};
  int ranks = 1;   ///< of the launch
  int number = 1;  ///< of its hangs
  units::Seconds timeout{};
};

/// Writes the findings of a poll as JSON beside the run file and returns the path:
/// "run.h5.hang.json", or "run.h5.hang-2.json" for the second hang of a launch. It overwrites the
/// file of an earlier launch. If fewer than half of the ranks answered, the leader itself may be
/// cut off: the name is then "run.h5.hang-rank2.json", so that it does not overwrite what the
/// others found. Keys: `created`, `timeout` (seconds), `sentence`, `first_op`, `waiting`, `absent`,
/// `silent`, `culprits` (`rank`, `what`) and `ranks`, the state of each rank that answered; `more`
/// of a call counts the calls after it that may have been made too. Throws base::Error.
std::filesystem::path write_hang_file(const HangOf& which, const RankPoll::Result& found);

}  // namespace isoscale::runner
