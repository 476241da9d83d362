// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/errors.hpp"
#include "comm/message_queue.hpp"
#include "runner/watch/stuck_ranks.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

using base::ExitCode;

constexpr units::Seconds for_launcher{2};  // time to end the other processes after one has ended
constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 10'000'000};

constexpr timespec signal_pause{.tv_sec = 0, .tv_nsec = Supervisor::look_pause.value()};
constexpr timespec signal_glance{.tv_sec = 0, .tv_nsec = 0};
/// After this time the process kills itself, whatever MPI does.
constexpr std::chrono::seconds last_resort{5};
/// The time that a process which was told to end may spend on its message, and on finishing a
/// change of the run file: launchers kill a process one second after they told it to end.
constexpr std::chrono::milliseconds to_say_so{100}, to_finish_file{300};

void kill_self_later() {
  std::thread{[] {
    std::this_thread::sleep_for(last_resort);
    kill(getpid(), SIGKILL);
  }}.detach();
}

bool is_agreed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::UsageError&) {
    return true;
  } catch (const base::AgreedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return comm::problem_of(known);
  } catch (...) {
    return "an exception of no known kind";
  }
}

}  // namespace

void MpiLimit::starts() { watch("started"); }

void MpiLimit::ends() { watch("ended"); }

void MpiLimit::watch(std::string_view what) {
  over_ = false;
  thread_ = std::thread{[this, what] {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    const units::Seconds limit = is_first_ ? timeout_ : timeout_ + for_launcher;
    const auto begin = std::chrono::steady_clock::now();
    while (!over_) {
      constexpr int by_signal = 128;
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
  std::signal(wake_up(), SIG_IGN);  // no thread has to be woken up from now on
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

/// The work of one thread, and its result.
struct Supervisor::Task {
  std::thread thread;
  std::atomic<bool> done{false};
  ExitCode code = ExitCode::done;
  std::exception_ptr error;
};

Supervisor::Supervisor(const Setting& setting)
    : world_(setting.world),
      signals_(setting.signals),
      activity_(std::make_shared<Activity>(setting.world.rank())) {
  if (!comm::threads_may_talk()) return;
  rank_poll_.emplace(world_);
  spare_ = world_.duplicate();
}

void Supervisor::set_timeout(units::Seconds timeout) {
  const std::scoped_lock lock{mutex_};
  timeout_ = timeout;
}

void Supervisor::set_file(std::filesystem::path file) {
  const std::scoped_lock lock{mutex_};
  file_ = std::move(file);
}

std::uint64_t Supervisor::begin_point(Continuation continuation) {
  const std::scoped_lock lock{mutex_};
  continuation_ = std::move(continuation);
  in_point_ = true;
  return generation_;
}

void Supervisor::end_point(std::uint64_t generation) {
  std::unique_lock lock{mutex_};
  asked_.wait(lock, [&] { return !asks_; });
  if (generation != generation_) {
    lock.unlock();
    while (true) std::this_thread::sleep_for(std::chrono::hours{1});
  }
  continuation_ = nullptr;
  in_point_ = false;
}

/// From this call until end_asking(), the working thread cannot leave its point. Returns the
/// continuation of that point.
Supervisor::Continuation Supervisor::begin_asking() {
  const std::scoped_lock lock{mutex_};
  asks_ = true;
  return continuation_;
}

void Supervisor::end_asking(bool gives_up) {
  {
    const std::scoped_lock lock{mutex_};
    asks_ = false;
    if (gives_up) {
      ++generation_;
      continuation_ = nullptr;
      in_point_ = false;
    }
  }
  asked_.notify_all();
}

void Supervisor::set_abort_handler(std::function<void(const std::string&)> abort_handler) {
  const std::scoped_lock lock{mutex_};
  abort_handler_ = std::move(abort_handler);
}

std::shared_ptr<Supervisor::Task> Supervisor::start(std::function<ExitCode()> work) const {
  auto task = std::make_shared<Task>();
  try {
    task->thread = std::thread{[task = task.get(), keep = task, work = std::move(work),
                                watcher = pthread_self()]() mutable {
      try {
        task->code = work();
      } catch (...) {
        task->error = std::current_exception();
      }
      work = nullptr;  // destroyed before `done` can be seen
      task->done.store(true, std::memory_order_release);
      pthread_kill(watcher, HeldSignals::wake_up());
    }};
  } catch (const std::system_error& error) {
    throw base::Error(fmt::format(
        "cannot start the thread that works ({}): raise the limit on processes of this user or "
        "container",
        error.what()));
  }
  return task;
}

ExitCode Supervisor::watch(const std::function<ExitCode()>& work) {
  if (!rank_poll_) {
    signals_.release();
    return work();
  }
  moved_ = comm::now();
  std::shared_ptr<Task> task = start(work);
  units::Nanoseconds looked = moved_;
  while (true) {
    if (task->done.load(std::memory_order_acquire)) {
      if (!must_poll(*task)) return result_of(*task);
      activity_->failed(text_of(task->error));
      task = poll_ranks(std::move(task));
    }
    take_signal(signal_pause);
    if (comm::now() - looked < look_pause) continue;
    looked = comm::now();
    const bool still = stands_still();
    if (rank_poll_->is_requested() || still) task = poll_ranks(std::move(task));
  }
}

/// True if the task failed within a point on this rank alone. The other ranks still wait in that
/// point, so they must be told by a poll.
bool Supervisor::must_poll(const Task& task) {
  if (!task.error || is_agreed(task.error)) return false;
  const std::scoped_lock lock{mutex_};
  return in_point_;
}

ExitCode Supervisor::result_of(Task& task) const {
  task.thread.join();
  std::signal(SIGUSR1, SIG_IGN);  // the run has ended, so a request to end it has no effect
  signals_.release();
  if (task.error) std::rethrow_exception(task.error);
  return gave_up_ ? ExitCode::hang : task.code;
}

bool Supervisor::stands_still() {
  Activity::Motion motion = activity_->motion();
  const units::Nanoseconds now = comm::now();
  if (motion != motion_) {
    motion_ = std::move(motion);
    moved_ = now;
  }
  const std::scoped_lock lock{mutex_};
  return timeout_.value() > 0 && units::to_seconds(now - moved_) > timeout_;
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
  constexpr int by_signal = 128;
  if (world_.rank() == 0) {
    const std::scoped_lock lock{mutex_};
    std::string text =
        fmt::format("isoscale: ended by {}", signal == SIGINT ? "SIGINT" : "SIGTERM");
    std::error_code unknown;
    // The file exists only after the first point has ended.
    if (!file_.empty() && std::filesystem::exists(file_, unknown)) {
      text += fmt::format(
          "; the points that were finished are in {}; continue with: isoscale run "
          "--resume {}",
          file_.string(), file_.string());
    }
    base::warn_within(text, to_say_so);
  }
  static_cast<void>(file_mutex_.try_lock_for(to_finish_file));
  std::_Exit(by_signal + signal);
}

std::shared_ptr<Supervisor::Task> Supervisor::poll_ranks(std::shared_ptr<Task> task) {
  RankState own = activity_->state();
  own.still = units::to_seconds(comm::now() - moved_).value();
  const Continuation continuation = begin_asking();
  units::Seconds timeout;
  {
    const std::scoped_lock lock{mutex_};
    timeout = timeout_;
  }
  own.can_leave = static_cast<bool>(continuation);
  const RankPoll::Result found =
      rank_poll_->poll(own, timeout, [this] { take_signal(signal_glance); });
  // If other ranks made this rank answer, its own time without progress continues to count.
  if (!found.calm || units::Seconds{own.still} >= timeout) moved_ = comm::now();
  if (found.calm) {
    end_asking(false);
    return task;
  }
  if (!found.goes_on) end_job(found);
  if (found.leader == world_.rank()) tell(found);
  gave_up_ = true;
  activity_->interrupt();
  task->thread.detach();  // it may be stuck for ever
  activity_->start_anew();
  end_asking(true);
  return start([this, continuation, why = found.sentence] {
    comm::Communicator world = spare_.duplicate();
    world.count_calls(activity_->calls());
    return continuation("hang: " + why, std::move(world));
  });
}

/// Prints the findings of a poll on standard error, and writes them beside the run file.
void Supervisor::tell(const RankPoll::Result& found) {
  const std::scoped_lock lock{mutex_};
  std::string doing;
  for (const RankState& state : found.states) {
    if (state.rank == found.leader) doing = state.doing;
  }
  base::warn_within(fmt::format("isoscale: hang: nothing moves ({}): {}", doing, found.sentence));
  if (file_.empty()) return;
  try {
    const std::filesystem::path file = write_hang_file(
        {.run_file = file_, .ranks = world_.size(), .number = ++told_, .timeout = timeout_}, found);
    base::warn_within(fmt::format("isoscale: the state of each rank is in {}", file.string()));
  } catch (const std::exception& error) {
    base::warn_within(
        fmt::format("isoscale: the state of each rank could not be written: {}", error.what()));
  }
}

void Supervisor::end_job(RankPoll::Result found) {
  kill_self_later();
  if (found.sentence.empty()) found.sentence = found.hang.sentence();
  const bool leads = found.leader == world_.rank();
  if (leads || found.leader < 0) tell(found);
  if (leads && world_.rank() == 0) {
    std::function<void(const std::string&)> abort_handler;
    {
      const std::scoped_lock lock{mutex_};
      abort_handler = abort_handler_;
    }
    constexpr std::chrono::seconds to_lock{1};
    if (abort_handler && file_mutex_.try_lock_for(to_lock)) {
      try {
        abort_handler("hang: " + found.sentence);
      } catch (const std::exception& error) {
        base::warn_within(
            fmt::format("isoscale: the run file could not be notified: {}", error.what()));
      }
    }
  }
  // The leader ends the job for all ranks. The others wait for that, and end the job themselves
  // only if the leader fails to.
  constexpr std::chrono::seconds for_leader{3};
  if (!leads && found.leader >= 0) std::this_thread::sleep_for(for_leader);
  comm::Environment::abort_job(static_cast<int>(ExitCode::hang));
}

}  // namespace isoscale::runner
