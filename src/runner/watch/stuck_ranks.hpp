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

/// Finds out which ranks cause a hang (a job that makes no progress), and writes this to a file.
namespace isoscale::runner::watch {

struct Culprit {
  int rank = 0;
  std::string what{};  ///< "never answered", "failed: ...", "is in gemm, forward, layer 3"
};

struct Hang {
  std::vector<int> silent{};  ///< ranks that never answered, ascending
  /// The ranks that cause the hang, ascending; empty if none can be named.
  std::vector<Culprit> culprits{};
  /// The op of the first call that some members of a communicator have made and others have not; ""
  /// if there is no such call.
  std::string first_op{};
  /// Ranks that have made this call, and members that have not.
  std::vector<int> waiting{}, absent{};

  /// Returns the findings in one sentence: "rank 2 never answered; rank 2 did not arrive at
  /// all_reduce ..., where ranks 0-1 wait".
  [[nodiscard]] std::string sentence() const;
};

/// Finds the ranks that cause a hang in a launch of `ranks` ranks. `states` are the states of those
/// ranks that answered. In a chain of ranks that wait, only the last, which waits for none, is
/// named.
[[nodiscard]] Hang find_hang(const std::vector<RankState>& states, int ranks);

/// Asks every rank for its state; this is called a poll. It makes no collective call, since any
/// rank may have ended or be stuck. The first few ranks may lead a poll: each of them asks all
/// other ranks, which send their states to all of these few. The lowest of the few that answers is
/// the leader: it finds the cause, and sends its findings to all ranks whose states it has.
class RankPoll {
 public:
  /// Collective over `world`: sets up the queue for the messages of later polls.
  explicit RankPoll(const comm::Communicator& world)
      : mail_(world), rank_(world.rank()), size_(world.size()) {}
  /// After a poll, there may be messages that nobody has received, so the queue is not freed.
  ~RankPoll() {
    if (number_ > 0) abandon();
  }
  RankPoll(const RankPoll&) = delete;
  RankPoll& operator=(const RankPoll&) = delete;

  /// True if another rank has begun a poll.
  [[nodiscard]] bool is_requested();

  /// The result of a poll.
  struct Result {
    /// On the leader: the states of all ranks that answered. On other ranks: empty, unless no
    /// leader sent its findings; then the states that this rank has received, and its own.
    std::vector<RankState> states{};
    Hang hang{};      ///< valid on the leader only
    int leader = -1;  ///< rank of the leader; -1 if none sent its findings
    std::string sentence{};
    /// True if nothing hangs: all ranks answered, none failed, and some make progress or all idle.
    bool calm = false;
  };
  /// Begins a poll, or joins one that another rank has begun; it ends within about 4 seconds. The
  /// poll finds out which of the ranks that are not idle make progress. Usually these are the ranks
  /// whose last progress was less than half of `timeout` ago. If the last progress of every rank
  /// that is not idle was less than `timeout` ago, they all count as making progress. `timeout` is
  /// the time without progress that begins a poll. `meanwhile` is called every few milliseconds.
  [[nodiscard]] Result poll(const RankState& own, units::Seconds timeout,
                            const std::function<void()>& meanwhile);

  void abandon() noexcept { mail_.abandon(); }

 private:
  void collect(std::vector<RankState>& states);
  [[nodiscard]] Result lead(std::vector<RankState> states, units::Seconds timeout);
  void post(int to, int box, const std::string& text);
  [[nodiscard]] std::optional<std::string> take(int box, int* from = nullptr);
  [[nodiscard]] std::optional<Result> received_finding();

  comm::MessageQueue mail_;
  int rank_, size_;
  bool asked_ = false;
  int number_ = 0;  ///< number of the current poll; messages of earlier polls may still arrive
};

/// The run, the launch and the point that are watched, for the file of findings.
struct Watched {
  int ranks = 1;  ///< number of ranks of the launch
  std::filesystem::path run_file{};
  int point = -1;  ///< index in the plan of the point that is being measured; -1 before the first
  int left = 0;    ///< number of points that --resume would measure if this point hung
  units::Seconds timeout{};  ///< the time without progress that counts as a hang; 0 = no limit
};

/// Writes the findings of a poll as JSON to a file beside the run file, and returns its path.
/// Throws base::Error if it cannot be written. The name is "run.h5.hang.json" if the run file is
/// "run.h5"; a file of an earlier launch is overwritten. If fewer than half of the ranks answered,
/// this rank itself may be cut off from the others. The name then has its rank,
/// "run.h5.hang-rank2.json", so that the findings of other ranks are not overwritten. The keys are
/// - `created`, and `timeout` in seconds
/// - `point`: index in the plan, -1 before the first; `left`: number of points that --resume would
///   measure
/// - `sentence`, `first_op`, `waiting`, `absent`, `silent`, and `culprits` (each with `rank` and
///   `what`): see Hang
/// - `ranks`: the RankState of each rank that answered; in it, `more` is the number of further
///   calls that the rank may have made
std::filesystem::path write_hang_file(const Watched& watched, const RankPoll::Result& found);

/// The hang that ended a job, as read from "run.h5.hang.json".
struct StoredHang {
  int point = 0;  ///< index in the plan
  std::string sentence{};
};
/// Reads the file of findings beside a run file. Absent if there is none or it cannot be read, if
/// it is older than `since` (UTC, as run files write times), or if no point was being measured.
[[nodiscard]] std::optional<StoredHang> read_hang_file(const std::filesystem::path& run_file,
                                                       const std::string& since);

/// The reason of a point begins with this text if the point hung and ended its job.
inline constexpr std::string_view hang_prefix = "hang: ";

}  // namespace isoscale::runner::watch
