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

/// Finds the ranks that hold up a job that stands still, and writes down what was found.
namespace isoscale::runner {

struct Culprit {
  int rank = 0;
  std::string what{};  ///< "never answered", "failed: ...", "is in gemm, forward, layer 3"
};

struct Hang {
  std::vector<int> silent{};        ///< ranks that never answered, ascending
  std::vector<Culprit> culprits{};  ///< by rank; empty where nobody can be told
  /// The first call in which some have arrived and others have not; "" when there is none.
  std::string first_op{};
  std::vector<int> waiting{}, absent{};  ///< ranks, at that call

  /// One sentence: "rank 2 did not arrive at all_reduce ... (never answered)".
  [[nodiscard]] std::string sentence() const;
};

/// From what the ranks that answered say of themselves, of a launch of `ranks`. Of a chain of ranks
/// that wait for each other only its end is a culprit.
[[nodiscard]] Hang find_hang(const std::vector<RankState>& states, int ranks);

/// Asks every rank for its state, without a collective call, since any rank may be gone. Ranks send
/// their states to the first few; each of these asks all others. The lowest of them that answers
/// collects the states and tells everybody what it found.
class RankPoll {
 public:
  /// Collective over `world`.
  explicit RankPoll(const comm::Communicator& world)
      : mail_(world), rank_(world.rank()), size_(world.size()) {}
  /// After a poll, messages to ranks that did not look are still under way.
  ~RankPoll() {
    if (number_ > 0) abandon();
  }
  RankPoll(const RankPoll&) = delete;
  RankPoll& operator=(const RankPoll&) = delete;

  /// True once another rank has begun a poll.
  [[nodiscard]] bool is_requested();

  /// The outcome of a poll.
  struct Result {
    /// The states of the ranks that answered, on the leader; of this rank where no leader was heard
    /// of.
    std::vector<RankState> states{};
    Hang hang{};      ///< on the leader
    int leader = -1;  ///< -1: none was heard of
    std::string sentence{};
    bool calm = false;     ///< nobody is missing, and somebody moves
    bool goes_on = false;  ///< all answered, and all can leave what they are at
  };
  /// Begins a poll, or answers that of another rank; ends within 4 seconds.
  /// A rank that has not stood still for half of `timeout` moves; where only ranks with nothing to
  /// do have waited for `timeout`, one that has not for all of it. Calls `meanwhile` every few
  /// milliseconds.
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

/// Writes what a poll found as JSON beside the run file, "run.h5.hang.json", the second of a
/// launch "run.h5.hang-2.json", over that of an earlier launch; returns its path. Where fewer than
/// half answered, who is cut off may be the leader: "run.h5.hang-rank2.json" then, so that it does
/// not overwrite what the others found. Keys: `created`, `timeout` (seconds), `sentence`,
/// `first_op`, `waiting`, `absent`, `silent`, `culprits` (`rank`, `what`) and `ranks`, what each
/// that answered was at; `more` of a call counts those behind it that may have been made too.
/// Throws base::Error.
std::filesystem::path write_hang_file(const HangOf& which, const RankPoll::Result& found);

}  // namespace isoscale::runner
