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
#include "runner/watch/activity_and_progress_line.hpp"
#include "runner/watch/stuck_ranks.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner::watch {

/// Limits how long MPI may take to start and to end, since no supervisor watches at these times. If
/// MPI takes too long, usually because a rank of the job is missing, the process prints a message
/// and ends. SIGTERM and SIGINT still end the process at once, although they may already be blocked
/// (see HeldSignals). One process of the launch gives up two seconds before the others, so that the
/// launcher can end those: mpirun of Open MPI 4.1 may crash or hang if all end at the same time.
class MpiLimit {
 public:
  /// `timeout` 0 means no limit. `is_first` is true on the process that ends before the others.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts() { watch("started"); }
  /// Begins to limit how long MPI takes to end. Must be called after starts() and is_over().
  void ends() { watch("ended"); }
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Holds back the signals that end a run in an orderly way. They are blocked in all threads that
/// start later, so that only the supervisor gets them. So it must be created before MPI starts
/// threads.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  [[nodiscard]] const sigset_t& set() const { return set_; }
  /// Returns the signal with which the supervisor's thread is woken up while it waits for signals.
  [[nodiscard]] static int wake_up() { return SIGRTMIN; }
  /// Unblocks the signals; they then have their default effect on the process.
  void release();

 private:
  sigset_t set_{}, before_{};
};

/// Watches a launch from its own thread. The thread that it watches, called the working thread, is
/// the main thread of the process. The supervisor ends the job if the working thread makes no
/// progress, if it fails within a point on this rank alone, or if the process is told to end.
class Supervisor {
 public:
  /// The time between two checks. Each checks whether this rank has made progress, and whether
  /// another rank has begun a poll (RankPoll). The time is long, since the supervisor may share a
  /// core with the measurement. Signals are nevertheless handled at once.
  static constexpr units::Nanoseconds look_pause{300'000'000};

  /// Collective. The working thread creates the one supervisor of a launch and calls its functions.
  Supervisor(const comm::Communicator& world, HeldSignals& signals);

  /// The working thread is watched as long as it keeps an object of this class. When the object is
  /// destroyed, signals get their default effect again, except for SIGUSR1, which is ignored from
  /// then on. If MPI allows only one thread, nothing is watched, and signals get their default
  /// effect when the object is constructed.
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
    std::array<struct sigaction, 3> actions_{};  ///< former actions of SIGTERM, SIGINT, SIGUSR1
  };

  [[nodiscard]] Activity& activity() { return activity_; }

  /// Sets the time without progress that counts as a hang; 0 = no limit.
  void set_timeout(units::Seconds timeout);
  /// Sets the run file, beside which the findings of a hang are written.
  void set_file(std::filesystem::path file);
  /// Tells the supervisor which point is being measured (its index in the plan), and how many
  /// points --resume would measure if this point hung.
  void set_point(int index, int left);
  /// Must be called while an exception from a point is handled. If the other ranks do not know of
  /// the exception, this function waits until the supervisor has ended the job. It returns if the
  /// other ranks know of the exception, or if nothing is watched.
  void fail_alone();
  /// Sets the function that rank 0 calls before a hang or a failure ends the job. The function
  /// writes the reason to the run file.
  void set_abort_handler(std::function<void(const std::string& why)> abort_handler);
  /// A thread that changes the run file must hold this mutex. A thread that has to end the process
  /// waits for the mutex, but for no longer than a second (0.3 s after a signal).
  [[nodiscard]] std::timed_mutex& file_mutex() { return file_mutex_; }
  /// True if a signal (SIGUSR1) has asked the run to end after the point that is being measured.
  [[nodiscard]] bool shall_end_soon() const { return ends_soon_.load(); }

 private:
  void look_until(const std::atomic<bool>& is_over);
  [[nodiscard]] bool stands_still();
  void take_signal(const timespec& within);
  [[noreturn]] void end_by_signal(int signal);
  /// Asks all ranks for their states. Returns only if the job need not end.
  void poll_ranks();
  void tell(const RankPoll::Result& found);
  [[noreturn]] void end_job(const RankPoll::Result& found);

  const comm::Communicator& world_;
  HeldSignals& signals_;
  Activity activity_;
  /// Absent if MPI allows only one thread; there are then no polls.
  std::optional<RankPoll> rank_poll_;

  mutable std::mutex mutex_;  ///< guards the two members that follow
  Watched watched_;
  std::function<void(const std::string&)> abort_handler_;

  std::timed_mutex file_mutex_;
  std::atomic<bool> ends_soon_{false};
  Activity::Motion motion_;
  units::Nanoseconds moved_{};  ///< time of the last change of `motion_`
};

}  // namespace isoscale::runner::watch
