// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
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

namespace isoscale::runner::watch {

/// Limits the time for the start and the end of MPI, during which no supervisor watches. If they
/// take too long because a rank of the job is missing, the process ends with a message. SIGTERM and
/// SIGINT, which may be blocked by then, end the process at once. One process of the launch ends
/// two seconds before the others, so that the launcher can end those: mpirun of Open MPI 4.1 may
/// crash or hang if all processes end at the same time.
class MpiLimit {
 public:
  /// `timeout` 0 means no limit. `is_first` is true on the process that ends first.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts() { watch("started"); }
  /// Begins to limit the end of MPI; called after starts() and is_over().
  void ends() { watch("ended"); }
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Signals that end a run in an orderly way. They are blocked in all threads that start later, so
/// that only the supervisor receives them. This object must be created before MPI starts threads.
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

/// Watches a launch from a thread of its own. If the working thread, which is the main thread of
/// the process, makes no progress, fails on one rank alone within a point, or is told to end, the
/// supervisor ends the job.
class Supervisor {
 public:
  /// The interval at which the supervisor checks if this rank makes progress and if another rank
  /// has begun a poll. It is long, since the supervisor may share a core with the measurement;
  /// signals are handled at once.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  /// Collective. A launch has one supervisor, which its working thread creates and uses.
  Supervisor(const comm::Communicator& world, HeldSignals& signals);

  /// The working thread is watched as long as it keeps this object. If MPI allows only one thread,
  /// nothing is watched. Afterwards signals act as by default, but SIGUSR1 has no effect.
  class Watch {
   public:
    explicit Watch(Supervisor& supervisor);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Supervisor& supervisor_;
    std::atomic<bool> is_over_{false};
    std::thread thread_;
    std::array<struct sigaction, 3> actions_{};  ///< what signals did before, see `passed_on`
  };

  [[nodiscard]] Activity& activity() { return activity_; }

  void set_timeout(units::Seconds timeout);  ///< 0 = no limit
  void set_file(std::filesystem::path file);
  /// Announces the point under way, by its index in the plan, and the number of points that
  /// --resume would measure if it hung.
  void set_point(int index, int left);
  /// Called while an exception from a point is handled. Ends the job if the other ranks do not know
  /// of the exception. Returns if they do, or if nothing is watched.
  void fail_alone();
  /// Sets the function that rank 0 calls before a hang or a failure ends the job. It writes the
  /// reason into the run file.
  void set_abort_handler(std::function<void(const std::string& why)> abort_handler);
  /// Lock this mutex to change the run file. A thread that has to end the process waits until the
  /// mutex is free, but for no longer than a second.
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// True if a signal (SIGUSR1) has asked the run to end after the point under way.
  [[nodiscard]] bool shall_end_soon() const { return ends_soon_.load(); }

 private:
  void look_until(const std::atomic<bool>& is_over);
  [[nodiscard]] bool stands_still();
  void take_signal(const timespec& within);
  [[noreturn]] void end_by_signal(int signal);
  /// Polls the ranks. Returns only if the job need not end.
  void poll_ranks();
  void tell(const RankPoll::Result& found);
  [[noreturn]] void end_job(RankPoll::Result found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  Activity activity_;
  std::optional<RankPoll> rank_poll_;  ///< absent if MPI allows only one thread

  mutable std::mutex mutex_;  ///< guards the next four members
  units::Seconds timeout_{0};
  std::filesystem::path file_;
  HangOf::Point point_;
  std::function<void(const std::string&)> abort_handler_;

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Activity::Motion motion_;
  units::Nanoseconds moved_{};  ///< when `motion_` last changed
};

}  // namespace isoscale::runner::watch
