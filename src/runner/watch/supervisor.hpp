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

/// Limits the time for the start and the end of MPI, during which nothing else watches. If they
/// take too long because a rank of the job is missing, the process ends with a message. SIGTERM and
/// SIGINT, which may be blocked by then, end the process at once. Only one process of the launch
/// ends itself first, and the launcher then ends the others: mpirun of Open MPI 4.1 may crash or
/// hang if all of them end at the same time.
class MpiLimit {
 public:
  /// `timeout` 0 means no limit. `is_first` is true on the process that ends first.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts();
  /// Ends the limit on the end of MPI; called after starts() and is_over().
  void ends();
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Signals that end a run in an orderly way. They are blocked in all threads that start later, so
/// that only the supervisor receives them. main() must create this object before MPI starts
/// threads.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  [[nodiscard]] const sigset_t& set() const { return set_; }
  /// Returns the signal that wakes up the thread which waits for these signals.
  [[nodiscard]] static int wake_up() { return SIGRTMIN; }
  /// Unblocks the signals, so that they end the process as by default.
  void release();

 private:
  sigset_t set_{}, before_{};
};

/// Runs a launch on a thread of its own, and watches it. If that thread stands still, fails on one
/// rank alone, or is told to end, the supervisor ends the job or continues it without the point
/// under way.
class Supervisor {
 public:
  /// The interval at which the supervisor checks the other ranks and whether this rank stands
  /// still. It is long, since the supervisor may share a core with the measurement; signals are
  /// taken at once.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  struct Setting {
    const comm::Communicator& world;
    HeldSignals& signals;
  };
  /// Collective. A launch has one supervisor, which its main thread creates and uses.
  explicit Supervisor(const Setting& setting);

  [[nodiscard]] Activity& activity() { return *activity_; }

  /// set_timeout() and set_file() are called by the working thread.
  void set_timeout(units::Seconds timeout);  ///< 0 = for ever
  void set_file(std::filesystem::path file);
  /// Continues the run after the point under way has been given up. It is called with the reason
  /// and with a new communicator of all ranks. Without a continuation, a hang ends the job.
  using Continuation =
      std::function<base::ExitCode(const std::string& why, comm::Communicator world)>;
  /// Announces work that may fail on this rank alone, until end_point() is called. Returns the
  /// generation of the work, a number that grows each time work is given up.
  [[nodiscard]] std::uint64_t begin_point(Continuation continuation);
  /// Ends the work of begin_point(); waits as long as ranks are being polled. If the work of this
  /// generation has been given up, it never returns: the calling thread was only slow, but other
  /// work has replaced its own.
  void end_point(std::uint64_t generation);
  /// Sets the function that rank 0 calls before the job ends early. It writes the reason into the
  /// run file.
  void set_abort_handler(std::function<void(const std::string& why)> abort_handler);
  /// Lock this mutex to change the run file: the process is not ended as long as it is locked.
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// True if work has been given up. Threads may then be stuck in MPI, so MPI cannot be finalised.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  /// True if a signal (SIGUSR1) has asked the run to end after the point under way.
  [[nodiscard]] bool shall_end_soon() const { return ends_soon_.load(); }

  /// Runs `work`, and returns its exit code, or `hang` if any work had to be given up. If MPI
  /// allows only one thread, `work` runs on this thread, and nothing is watched. Rethrows what
  /// `work` threw, except for a failure within a point on this rank alone. Does not return if the
  /// job has to end.
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
  /// Polls the ranks. Returns the task to continue with: `task` itself if all is well.
  [[nodiscard]] std::shared_ptr<Task> poll_ranks(std::shared_ptr<Task> task);
  void tell(const RankPoll::Result& found);
  [[noreturn]] void end_job(RankPoll::Result found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  std::shared_ptr<Activity> activity_;
  std::optional<RankPoll> rank_poll_;  ///< absent if MPI allows only one thread
  comm::Communicator spare_;           ///< used only if the run continues after a hang

  mutable std::mutex mutex_;  ///< guards the members below
  units::Seconds timeout_{0};
  std::filesystem::path file_;
  Continuation continuation_;
  bool in_point_ = false, asks_ = false;
  std::uint64_t generation_ = 0;  ///< how often work has been given up
  std::condition_variable asked_;
  std::function<void(const std::string&)> abort_handler_;
  int told_ = 0;  ///< number of hangs reported so far

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Activity::Motion motion_;
  units::Nanoseconds moved_{};  ///< when `motion_` last changed
  bool gave_up_ = false;
};

}  // namespace isoscale::runner
