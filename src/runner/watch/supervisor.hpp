// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "runner/watch/board.hpp"
#include "runner/watch/roll_call.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// Signals that end a run in order, held back from every thread that starts later: the supervisor
/// takes them. Made first thing in main, before MPI starts threads of its own.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  [[nodiscard]] const sigset_t& set() const { return set_; }
  /// One of them, by which a thread wakes up the one that takes signals.
  [[nodiscard]] static int wake_up() { return SIGRTMIN; }
  /// They end the process again, as they do by default.
  void release();

 private:
  sigset_t set_{}, before_{};
};

/// Lets a launch do its work on a thread of its own, and sees to it that the job ends, or goes on,
/// when that stands still, fails on one rank alone, or is told to end.
class Supervisor {
 public:
  /// How often it looks at other ranks and whether this one stands still; signals it takes at
  /// once. Seldom: it may share a core with what is measured.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  struct Setting {
    const comm::Communicator& world;
    HeldSignals& signals;
  };
  /// Collective. One for a launch, made and used by the main thread.
  explicit Supervisor(const Setting& setting);

  [[nodiscard]] Board& board() { return *board_; }

  /// From the thread that works.
  void set_timeout(units::Seconds timeout);  ///< 0 = for ever
  void set_file(std::filesystem::path file);
  /// How the run goes on after what it was at has been given up, with the reason and a fresh
  /// communicator of all ranks; without one a hang ends the job.
  using GoOn = std::function<base::ExitCode(const std::string& why, comm::Communicator world)>;
  /// Until end_point() the rank is at something that may fail by itself. Returns the number of the
  /// life in which it is.
  [[nodiscard]] std::uint64_t begin_point(GoOn go_on);
  /// Waits while ranks are being asked. Never returns to a thread whose life has been given up: it
  /// was not stuck for ever after all, and what it would touch next is no longer its own.
  void end_point(std::uint64_t life);
  /// What is left to do, on rank 0, before the job ends early: puts the reason into the run file.
  void set_last_words(std::function<void(const std::string& why)> last_words);
  /// Held while the run file changes, so that nobody ends the process in between.
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// Whether something was given up: threads may be stuck in MPI, which cannot be ended in order.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  /// Whether a signal asks for an end after the point under way (SIGUSR1).
  [[nodiscard]] bool shall_end_soon() const { return ends_soon_.load(); }

  /// Runs `work` to its end (on this thread, and nothing is watched, where MPI lets only one in)
  /// and returns its exit code, hang when anything had to be given up;
  /// throws what it threw when all ranks have that in hand, or there is only one. Does not return
  /// when the job must end.
  [[nodiscard]] base::ExitCode watch(const std::function<base::ExitCode()>& work);

 private:
  struct Task;
  [[nodiscard]] std::shared_ptr<Task> start(std::function<base::ExitCode()> work) const;
  [[nodiscard]] base::ExitCode result_of(Task& task) const;
  [[nodiscard]] bool must_call(const Task& task);
  [[nodiscard]] GoOn begin_asking();
  void end_asking(bool gives_up);
  [[nodiscard]] bool stands_still();
  void take_signal(const timespec& within);
  [[noreturn]] void end_by_signal(int signal);
  /// Returns the task that goes on: the same where all is well.
  [[nodiscard]] std::shared_ptr<Task> hold_roll_call(std::shared_ptr<Task> task);
  void tell(const RollCall::Result& found);
  [[noreturn]] void end_job(RollCall::Result found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  std::shared_ptr<Board> board_;
  std::optional<RollCall> roll_call_;  ///< absent where MPI lets only one thread in
  comm::Communicator spare_;           ///< nobody but a run that goes on uses it

  mutable std::mutex mutex_;  ///< of what follows
  units::Seconds timeout_{0};
  std::filesystem::path file_;
  GoOn go_on_;
  bool in_point_ = false, asks_ = false;
  std::uint64_t life_ = 0;  ///< how often the work was given up
  std::condition_variable asked_;
  std::function<void(const std::string&)> last_words_;
  int told_ = 0;  ///< hangs

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Board::Motion motion_;
  units::Nanoseconds moved_{};  ///< when it changed last
  bool gave_up_ = false;
};

}  // namespace isoscale::runner
