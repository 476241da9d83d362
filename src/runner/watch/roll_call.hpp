// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/message_queue.hpp"
#include "runner/watch/hang.hpp"
#include "runner/watch/state.hpp"

/// Who is still there, and where: asked for when a job stands still. It takes no collective call,
/// since any rank may be gone.
namespace isoscale::runner {

/// Ranks send what they are at to the first few; each of these asks all others. The lowest of them
/// that is there collects the answers and tells everybody what it found.
class RollCall {
 public:
  /// Collective over `world`.
  explicit RollCall(const comm::Communicator& world)
      : mail_(world), rank_(world.rank()), size_(world.size()) {}
  /// After a roll call the letters to ranks that did not look in are still under way.
  ~RollCall() {
    if (number_ > 0) abandon();
  }
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  /// Whether another rank has called.
  [[nodiscard]] bool is_called();

  /// What came of it.
  struct Result {
    /// Of the ranks that answered, on the leader; of this rank where none was heard of.
    std::vector<RankState> states{};
    Hang hang{};      ///< on the leader
    int leader = -1;  ///< -1: none was heard of
    std::string sentence{};
    bool calm = false;     ///< nobody is missing, and somebody moves
    bool goes_on = false;  ///< all answered, and all can leave what they are at
  };
  /// Calls, or answers the call of another; ends within 4 seconds.
  /// Who has not stood still for half of `timeout` moves; where only ranks with nothing to do have
  /// waited for `timeout`, who has not for all of it. Calls `meanwhile` every few milliseconds.
  [[nodiscard]] Result hold(const RankState& own, units::Seconds timeout,
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
  int number_ = 0;  ///< of this roll call: letters of earlier ones may still arrive
};

}  // namespace isoscale::runner
