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
#include <string_view>
#include <thread>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "runner/watch/progress.hpp"
#include "runner/watch/stuck_ranks.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// A time limit for the start and the end of MPI, when nothing else watches. Ends the process with
/// a sentence when that takes too long: some rank of the job is not there. SIGTERM and SIGINT,
/// which the process may hold back by then, end it at once. One process of the launch ends first,
/// and the launcher the others: Open MPI 4.1's mpirun may crash or hang itself where all of them
/// leave at once.
class MpiLimit {
 public:
  /// `timeout`: 0 = none. `is_first`: whether this process is the one that ends first.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts();
  /// After starts() and is_over().
  void ends();
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

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
  /// The interval of its checks of other ranks and of whether this one stands still; signals it
  /// takes at once. It is long since the thread may share a core with what is measured.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  struct Setting {
    const comm::Communicator& world;
    HeldSignals& signals;
  };
  /// Collective. One for a launch, made and used by the main thread.
  explicit Supervisor(const Setting& setting);

  [[nodiscard]] Activity& activity() { return *activity_; }

  /// From the thread that works.
  void set_timeout(units::Seconds timeout);  ///< 0 = for ever
  void set_file(std::filesystem::path file);
  /// Continues the run after the work under way has been given up, with the reason and a fresh
  /// communicator of all ranks; without one a hang ends the job.
  using Continuation =
      std::function<base::ExitCode(const std::string& why, comm::Communicator world)>;
  /// Until end_point() the rank is at something that may fail by itself. Returns the generation of
  /// the work, a number that grows when work is given up.
  [[nodiscard]] std::uint64_t begin_point(Continuation continuation);
  /// Waits while ranks are being asked. Never returns to a thread whose generation of the work has
  /// been given up: it was not stuck for ever after all, and what it would touch next is no longer
  /// its own.
  void end_point(std::uint64_t generation);
  /// Sets what rank 0 does before the job ends early: it puts the reason into the run file.
  void set_abort_handler(std::function<void(const std::string& why)> abort_handler);
  /// Held while the run file changes, so that nobody ends the process in between.
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// True once something was given up: threads may be stuck in MPI, which cannot be ended in order.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  /// True once a signal asks for an end after the point under way (SIGUSR1).
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
  [[nodiscard]] bool must_poll(const Task& task);
  [[nodiscard]] Continuation begin_asking();
  void end_asking(bool gives_up);
  [[nodiscard]] bool stands_still();
  void take_signal(const timespec& within);
  [[noreturn]] void end_by_signal(int signal);
  /// Returns the task that goes on: the same where all is well.
  [[nodiscard]] std::shared_ptr<Task> poll_ranks(std::shared_ptr<Task> task);
  void tell(const RankPoll::Result& found);
  [[noreturn]] void end_job(RankPoll::Result found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  std::shared_ptr<Activity> activity_;
  std::optional<RankPoll> rank_poll_;  ///< absent where MPI lets only one thread in
  comm::Communicator spare_;           ///< nobody but a run that goes on uses it

  mutable std::mutex mutex_;  ///< of what follows
  units::Seconds timeout_{0};
  std::filesystem::path file_;
  Continuation continuation_;
  bool in_point_ = false, asks_ = false;
  std::uint64_t generation_ = 0;  ///< how often the work was given up
  std::condition_variable asked_;
  std::function<void(const std::string&)> abort_handler_;
  int told_ = 0;  ///< hangs

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Activity::Motion motion_;
  units::Nanoseconds moved_{};  ///< when it changed last
  bool gave_up_ = false;
};

}  // namespace isoscale::runner
