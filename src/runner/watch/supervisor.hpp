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

/// A time limit for the start and the end of MPI, when nothing else watches. If they take too long,
/// since some rank of the job is missing, it ends the process with a message. SIGTERM and SIGINT,
/// which the process may block by then, end it at once. One process of the launch ends first, and
/// the launcher ends the others: mpirun of Open MPI 4.1 may crash or hang if all of them leave at
/// once.
class MpiLimit {
 public:
  /// A `timeout` of 0 means none. `is_first` says whether this process is the one that ends first.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts();
  /// Called after starts() and is_over().
  void ends();
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Signals that end a run in order. They are blocked in every thread that starts later, so that the
/// supervisor can take them. main() makes this object first, before MPI starts threads of its own.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  [[nodiscard]] const sigset_t& set() const { return set_; }
  /// Returns one of these signals, with which a thread wakes up the thread that takes them.
  [[nodiscard]] static int wake_up() { return SIGRTMIN; }
  /// Unblocks the signals: they end the process again, as they do by default.
  void release();

 private:
  sigset_t set_{}, before_{};
};

/// Runs a launch on a thread of its own. If that thread stands still, fails on one rank alone, or
/// is told to end, the supervisor ends the job or lets it continue.
class Supervisor {
 public:
  /// The interval at which it checks the other ranks and whether this rank stands still; it takes
  /// signals at once. The interval is long, since the thread may share a core with the measurement.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  struct Setting {
    const comm::Communicator& world;
    HeldSignals& signals;
  };
  /// Collective. A launch has one supervisor, which the main thread makes and uses.
  explicit Supervisor(const Setting& setting);

  [[nodiscard]] Activity& activity() { return *activity_; }

  /// set_timeout() and set_file() are called by the thread that works.
  void set_timeout(units::Seconds timeout);  ///< 0 = for ever
  void set_file(std::filesystem::path file);
  /// Continues the run after the work under way has been given up. It gets the reason and a fresh
  /// communicator of all ranks. Without a continuation a hang ends the job.
  using Continuation =
      std::function<base::ExitCode(const std::string& why, comm::Communicator world)>;
  /// Notes that until end_point() this rank does work that may fail on it alone. Returns the
  /// generation of the work, a number that grows when work is given up.
  [[nodiscard]] std::uint64_t begin_point(Continuation continuation);
  /// Waits while a poll of the ranks is under way. Never returns to a thread whose generation of
  /// the work has been given up: that thread was not stuck for ever, but must not touch the state
  /// of the work that replaced its own.
  void end_point(std::uint64_t generation);
  /// Sets the function that rank 0 calls before the job ends early; it writes the reason into the
  /// run file.
  void set_abort_handler(std::function<void(const std::string& why)> abort_handler);
  /// The mutex is held while the run file changes, so that the process is not ended meanwhile.
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// True once work was given up: threads may then be stuck in MPI, which cannot be finalised.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  /// True once a signal (SIGUSR1) has asked the run to end after the point under way.
  [[nodiscard]] bool shall_end_soon() const { return ends_soon_.load(); }

  /// Runs `work` to its end and returns its exit code, or `hang` if any work had to be given up. If
  /// MPI allows only one thread, it runs `work` on this thread and watches nothing. Rethrows what
  /// `work` threw, unless it failed within a point on this rank alone. Does not return if the job
  /// must end.
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
  /// Returns the task that continues: the same one if all is well.
  [[nodiscard]] std::shared_ptr<Task> poll_ranks(std::shared_ptr<Task> task);
  void tell(const RankPoll::Result& found);
  [[noreturn]] void end_job(RankPoll::Result found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  std::shared_ptr<Activity> activity_;
  std::optional<RankPoll> rank_poll_;  ///< absent if MPI allows only one thread
  comm::Communicator spare_;           ///< only a run that continues after a hang uses it

  mutable std::mutex mutex_;  ///< guards what follows
  units::Seconds timeout_{0};
  std::filesystem::path file_;
  Continuation continuation_;
  bool in_point_ = false, asks_ = false;
  std::uint64_t generation_ = 0;  ///< how often the work was given up
  std::condition_variable asked_;
  std::function<void(const std::string&)> abort_handler_;
  int told_ = 0;  ///< hangs reported so far

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Activity::Motion motion_;
  units::Nanoseconds moved_{};  ///< when `motion_` changed last
  bool gave_up_ = false;
};

}  // namespace isoscale::runner
