// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/supervisor.hpp"

#include <fmt/format.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/warn.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner::watch {
namespace {

using base::ExitCode;

// After one process has ended, the launcher gets this time to end the others.
constexpr units::Seconds for_launcher{2};
// Pause between two checks in MpiLimit.
constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 10'000'000};

constexpr timespec signal_pause{.tv_sec = 0, .tv_nsec = Supervisor::look_pause.value()};
// This timeout takes a signal that is already pending, without waiting for one.
constexpr timespec signal_glance{.tv_sec = 0, .tv_nsec = 0};
/// A process that ends the job kills itself after this time, even if MPI does not return.
constexpr std::chrono::seconds last_resort{5};
/// When the launcher tells a process to end, it kills the process one second later. Of this second,
/// the process may spend these times on its message and on a change of the run file.
constexpr std::chrono::milliseconds to_say_so{100}, to_finish_file{300};

constexpr std::array passed_on{SIGTERM, SIGINT, SIGUSR1};

/// Handles a signal that has come to another thread than the one that waits for signals. Libraries
/// may have started such threads before the signals were blocked. The thread blocks the signal from
/// now on, and sends it to the process again, so that the waiting thread gets it.
void pass_on(int signal, siginfo_t* /*info*/, void* context) {
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
  kill(getpid(), signal);
}

}  // namespace

void MpiLimit::watch(std::string_view what) {
  over_ = false;
  thread_ = std::thread{[this, what] {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    const units::Seconds limit = is_first_ ? timeout_ : timeout_ + for_launcher;
    const auto begin = std::chrono::steady_clock::now();
    while (!over_) {
      constexpr int by_signal = 128;  // exit code: 128 + number of the signal
      const int signal = sigtimedwait(&signals, nullptr, &between_looks);
      if (signal > 0) std::_Exit(by_signal + signal);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (!(timeout_.value() > 0) || waited.count() < limit.value()) continue;
      base::warn_within(fmt::format(
          "isoscale: hang: MPI has not {} within {}: some rank of the job is not there, or "
          "cannot be reached; check the launcher's hosts, or give more time with --timeout",
          what, units::format(timeout_)));
      std::_Exit(static_cast<int>(base::ExitCode::hang));
    }
  }};
}

void MpiLimit::is_over() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
}

HeldSignals::HeldSignals() {
  sigemptyset(&set_);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, wake_up()}) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

HeldSignals::~HeldSignals() { release(); }

void HeldSignals::release() {
  // No thread of a supervisor waits for signals now, so none needs to be woken up.
  std::signal(wake_up(), SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Supervisor::Supervisor(const comm::Communicator& world, HeldSignals& signals)
    : world_(world), signals_(signals), activity_(world.rank()), watched_{.ranks = world.size()} {
  if (comm::threads_may_talk()) rank_poll_.emplace(world_);
}

void Supervisor::set_timeout(units::Seconds timeout) {
  const std::scoped_lock lock{mutex_};
  watched_.timeout = timeout;
}

void Supervisor::set_file(std::filesystem::path file) {
  const std::scoped_lock lock{mutex_};
  watched_.run_file = std::move(file);
}

void Supervisor::set_point(int index, int left) {
  const std::scoped_lock lock{mutex_};
  watched_.point = index;
  watched_.left = left;
}

void Supervisor::fail_alone() {
  try {
    throw;
  } catch (const base::UsageError&) {
    // All ranks know of this error, and of a base::AgreedError.
  } catch (const base::AgreedError&) {
  } catch (const std::exception& error) {
    activity_.fail(comm::problem_of(error));
  } catch (...) {
    activity_.fail("an exception of no known kind");
  }
}

void Supervisor::set_abort_handler(std::function<void(const std::string&)> abort_handler) {
  const std::scoped_lock lock{mutex_};
  abort_handler_ = std::move(abort_handler);
}

Supervisor::Watch::Watch(Supervisor& supervisor) : supervisor_(supervisor) {
  if (!supervisor_.rank_poll_) {
    supervisor_.signals_.release();
    return;
  }
  supervisor_.activity_.set_watched();
  supervisor_.moved_ = comm::now();
  try {
    thread_ = std::thread{[this] { supervisor_.look_until(is_over_); }};
  } catch (const std::system_error& failure) {
    throw base::Error(fmt::format(
        "cannot start the thread that watches ({}): raise the limit on processes of this user or "
        "container",
        failure.what()));
  }
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (std::size_t i = 0; i < passed_on.size(); ++i) sigaction(passed_on[i], &action, &actions_[i]);
}

Supervisor::Watch::~Watch() {
  if (!thread_.joinable()) return;
  is_over_.store(true, std::memory_order_release);
  pthread_kill(thread_.native_handle(), HeldSignals::wake_up());
  thread_.join();
  for (std::size_t i = 0; i < passed_on.size(); ++i) {
    sigaction(passed_on[i], &actions_[i], nullptr);
  }
  std::signal(SIGUSR1, SIG_IGN);  // the run has ended, so a request to end it has no effect
  supervisor_.signals_.release();
}

void Supervisor::look_until(const std::atomic<bool>& is_over) {
  units::Nanoseconds looked = moved_;
  while (!is_over.load(std::memory_order_acquire)) {
    take_signal(signal_pause);
    if (comm::now() - looked < look_pause) continue;
    looked = comm::now();
    const bool still = stands_still();
    if (rank_poll_->is_requested() || still || activity_.has_failed()) poll_ranks();
  }
}

bool Supervisor::stands_still() {
  Activity::Motion motion = activity_.motion();
  const units::Nanoseconds now = comm::now();
  if (motion != motion_) {
    motion_ = std::move(motion);
    moved_ = now;
  }
  const std::scoped_lock lock{mutex_};
  return watched_.timeout.value() > 0 && units::to_seconds(now - moved_) > watched_.timeout;
}

void Supervisor::take_signal(const timespec& within) {
  const int signal = sigtimedwait(&signals_.set(), nullptr, &within);
  if (signal == SIGTERM || signal == SIGINT) end_by_signal(signal);
  if (signal != SIGUSR1 || ends_soon_.exchange(true)) return;
  if (world_.rank() == 0) {
    base::warn_within("isoscale: asked to end (SIGUSR1): finishing the current point first");
  }
}

void Supervisor::end_by_signal(int signal) {
  constexpr int by_signal = 128;  // exit code: 128 + number of the signal
  if (world_.rank() == 0) {
    const std::scoped_lock lock{mutex_};
    std::string text =
        fmt::format("isoscale: ended by {}", signal == SIGINT ? "SIGINT" : "SIGTERM");
    std::error_code unknown;
    // The file exists only once the first point has ended.
    const std::filesystem::path& file = watched_.run_file;
    if (!file.empty() && std::filesystem::exists(file, unknown)) {
      text += fmt::format(
          "; the points that were finished are in {0}; continue with: isoscale run --resume {0}",
          file.string());
    }
    base::warn_within(text, to_say_so);
  }
  static_cast<void>(file_mutex_.try_lock_for(to_finish_file));
  std::_Exit(by_signal + signal);
}

void Supervisor::poll_ranks() {
  RankState own = activity_.state();
  own.still = units::to_seconds(comm::now() - moved_).value();
  units::Seconds timeout;
  {
    const std::scoped_lock lock{mutex_};
    timeout = watched_.timeout;
  }
  const RankPoll::Result found =
      rank_poll_->poll(own, timeout, [this] { take_signal(signal_glance); });
  // If another rank began the poll, this rank's own time without progress goes on counting.
  if (!found.calm || units::Seconds{own.still} >= timeout) moved_ = comm::now();
  if (!found.calm) end_job(found);
}

/// Prints the findings of a poll on standard error, and writes them to a file beside the run file.
void Supervisor::tell(const RankPoll::Result& found) {
  const std::scoped_lock lock{mutex_};
  std::string doing;
  for (const RankState& state : found.states) {
    if (state.rank == found.leader) doing = state.doing;
  }
  base::warn_within(fmt::format("isoscale: hang: nothing moves ({}): {}", doing, found.sentence));
  if (watched_.run_file.empty()) return;
  try {
    const std::filesystem::path file = write_hang_file(watched_, found);
    base::warn_within(fmt::format("isoscale: the state of each rank is in {}", file.string()));
  } catch (const std::exception& error) {
    base::warn_within(
        fmt::format("isoscale: the state of each rank could not be written: {}", error.what()));
  }
}

void Supervisor::end_job(const RankPoll::Result& found) {
  std::thread{[] {
    std::this_thread::sleep_for(last_resort);
    kill(getpid(), SIGKILL);
  }}.detach();
  const bool leads = found.leader == world_.rank();
  if (leads || found.leader < 0) tell(found);
  if (leads && world_.rank() == 0) {
    // While the handler runs, set_abort_handler() must not replace it.
    const std::scoped_lock lock{mutex_};
    constexpr std::chrono::seconds to_lock{1};
    if (abort_handler_ && file_mutex_.try_lock_for(to_lock)) {
      try {
        abort_handler_(std::string{hang_prefix} + found.sentence);
      } catch (const std::exception& error) {
        base::warn_within(
            fmt::format("isoscale: the run file could not be notified: {}", error.what()));
      }
    }
  }
  // The leader ends the job for all ranks. Other ranks wait for this, and end the job themselves
  // only if the leader has not done so after a while.
  constexpr std::chrono::seconds for_leader{3};
  if (!leads && found.leader >= 0) std::this_thread::sleep_for(for_leader);
  comm::Environment::abort_job(static_cast<int>(ExitCode::hang));
}

}  // namespace isoscale::runner::watch
