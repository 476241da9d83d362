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

/// Finds the ranks because of which a job hangs, that is, makes no progress, and writes the
/// findings to a file.
namespace isoscale::runner::watch {

struct Culprit {
  int rank = 0;
  std::string what{};  ///< "never answered", "failed: ...", "is in gemm, forward, layer 3"
};

struct Hang {
  std::vector<int> silent{};        ///< ranks that never answered, ascending
  std::vector<Culprit> culprits{};  ///< by rank; empty if none can be named
  /// The first call in which some members have arrived and others have not; "" if there is no such
  /// call.
  std::string first_op{};
  std::vector<int> waiting{}, absent{};  ///< ranks that have arrived there, and ranks that have not

  /// Returns the findings in one sentence: "rank 2 never answered; rank 2 did not arrive at
  /// all_reduce ..., where ranks 0-1 wait".
  [[nodiscard]] std::string sentence() const;
};

/// Finds the culprits of a hang. `states` are those of the ranks that answered, in a launch of
/// `ranks` ranks. If ranks wait for each other in a chain, only the last one in the chain is a
/// culprit.
[[nodiscard]] Hang find_hang(const std::vector<RankState>& states, int ranks);

/// Asks every rank for its state. No collective call is used, since any rank may have ended or be
/// stuck. Every rank sends its state to a few of the lowest ranks, each of which asks all others.
/// The lowest of these that answers becomes the leader: it collects the states, and sends its
/// findings to all ranks.
class RankPoll {
 public:
  /// Collective over `world`: sets up the messages of later polls.
  explicit RankPoll(const comm::Communicator& world)
      : mail_(world), rank_(world.rank()), size_(world.size()) {}
  /// After a poll, messages may remain that their ranks did not receive, so the queue is abandoned.
  ~RankPoll() {
    if (number_ > 0) abandon();
  }
  RankPoll(const RankPoll&) = delete;
  RankPoll& operator=(const RankPoll&) = delete;

  /// True if another rank has begun a poll.
  [[nodiscard]] bool is_requested();

  /// The result of a poll.
  struct Result {
    /// On the leader, the states of all ranks that answered. If no leader was found, the state of
    /// this rank.
    std::vector<RankState> states{};
    Hang hang{};      ///< valid on the leader only
    int leader = -1;  ///< -1 if no leader sent a finding
    std::string sentence{};
    bool calm = false;  ///< true if all ranks answered, none failed, and some move or all are idle
  };
  /// Begins a poll, or joins the poll of another rank; ends within 4 seconds. `timeout` is the time
  /// without progress after which a rank counts as stuck. A working rank counts as moving if it
  /// last made progress less than half of `timeout` ago. If every working rank made progress less
  /// than `timeout` ago, all of them count as moving. Calls `meanwhile` every few milliseconds.
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
  [[nodiscard]] std::optional<Result> received_finding();

  comm::MessageQueue mail_;
  int rank_, size_;
  bool asked_ = false;
  int number_ = 0;  ///< number of this poll; messages of earlier ones may still arrive
};

/// Identifies a hang by the run and the point.
struct HangOf {
  struct Point {
    int index = -1;  ///< index in the plan of the point under way; -1 before the first
    int left = 0;    ///< number of points that --resume would measure
  };
  std::filesystem::path run_file{};
  int ranks = 1;  ///< number of ranks of the launch
  Point point{};
  units::Seconds timeout{};
};

/// Writes the findings of a poll as JSON beside the run file and returns the path:
/// "run.h5.hang.json". The file of an earlier launch is overwritten. If fewer than half of the
/// ranks answered, the leader itself may be cut off, so the name gets its rank,
/// "run.h5.hang-rank2.json", and does not overwrite the findings of others. Keys: `created`,
/// `point` (index in the plan, -1 before the first), `left` (points that --resume would measure),
/// `timeout` (seconds), `sentence`, `first_op`, `waiting`, `absent`, `silent`, `culprits` (`rank`,
/// `what`), and `ranks`, which has the state of each rank that answered; there `more` is the number
/// of later calls that the rank may have made. Throws base::Error if the file cannot be written.
std::filesystem::path write_hang_file(const HangOf& which, const RankPoll::Result& found);

/// The hang that ended a job, as read from "run.h5.hang.json".
struct StoredHang {
  int point = 0;  ///< index in the plan
  std::string sentence{};
};
/// Reads the file next to a run file that says where the launch hung. Absent if there is no such
/// file, if it is older than `since` (UTC time as in run files), or if no point was being measured.
[[nodiscard]] std::optional<StoredHang> read_hang_file(const std::filesystem::path& run_file,
                                                       const std::string& since);

/// The reason of a point that ended its job begins with this.
inline constexpr std::string_view hang_prefix = "hang: ";

}  // namespace isoscale::runner::watch
