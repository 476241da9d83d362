// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "runner/watch/rank_state.hpp"
#include "units/quantity.hpp"

/// The progress of this rank: it is shown to people, and the supervisor watches it.
namespace isoscale::runner {

/// A session that can say where it is.
class Watched {
 public:
  [[nodiscard]] virtual executor::Whereabouts where() const = 0;
  /// Adds the ops that its streams are in, and the progress of its communicators.
  virtual void describe(RankState& state) const = 0;
  virtual void interrupt() noexcept = 0;

 protected:
  ~Watched() = default;
};

/// The current activity of this rank. The thread that works writes it, and the supervisor's thread
/// reads it.
class Activity {
 public:
  explicit Activity(int rank) : rank_(rank), calls_(std::make_shared<comm::CallCount>()) {}

  void doing(std::string_view what);
  void at_point(std::string_view what);  ///< goes before what doing() notes
  void failed(std::string_view why);

  /// While an object exists, the rank is idle: it waits for other ranks, or for a time to come. If
  /// `activity` is null, nothing is noted.
  class Idle {
   public:
    explicit Idle(Activity* activity);
    ~Idle();
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;

   private:
    Activity* activity_;
    std::uint64_t generation_ = 0;
  };

  /// Forgets the sessions and idle times of work that has been given up.
  void start_anew();

  void enter(Watched* session);
  void leave(Watched* session);
  /// Interrupts the waits of its sessions, as far as they can be interrupted.
  void interrupt() noexcept;
  /// Returns the counter of the runner's own collective calls.
  [[nodiscard]] std::shared_ptr<comm::CallCount> calls() const;

  /// A snapshot that equals an earlier one if nothing has moved since.
  struct Motion {
    std::uint64_t changes = 0, calls = 0;
    std::vector<executor::Whereabouts> sessions{};
    bool rests = false;
    bool operator==(const Motion&) const = default;
  };
  [[nodiscard]] Motion motion() const;
  [[nodiscard]] RankState state() const;

 private:
  int rank_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::shared_ptr<comm::CallCount> calls_;
  std::string point_, doing_ = "starting", failure_;
  std::uint64_t changes_ = 0;
  std::uint64_t generation_ = 0;  ///< how often work was given up
  int idle_count_ = 0;
  std::vector<Watched*> sessions_;
};

/// Shows the progress of a run on standard error: one live line on a terminal, else plain lines.
class Progress {
 public:
  enum class Style : std::uint8_t { live, lines, silent };

  Progress(Style style, int points) : Progress(style, points, {}) {}
  /// `points` is the number of points in the plan. `planned` holds the expected time of each point
  /// that this launch measures, by index. The run ends by the `deadline`, if there is one.
  Progress(Style style, int points, std::map<int, units::Seconds> planned,
           std::optional<units::Nanoseconds> deadline = std::nullopt);
  /// Returns live if standard error is a terminal, else lines.
  [[nodiscard]] static Style detect();

  /// Updates the activity from now on, even if nothing is printed.
  void tell(Activity* activity) { activity_ = activity; }
  [[nodiscard]] Activity* activity() const { return activity_; }

  void begin_point(int index, std::string_view what);
  /// Notes what the point is doing. A log shows it at most every ten seconds.
  void doing(std::string_view what);
  void end_point(std::string_view outcome);
  void finish();

 private:
  void show(std::string_view state);
  [[nodiscard]] std::string time_text() const;

  Style style_;
  Activity* activity_ = nullptr;
  int points_;
  std::map<int, units::Seconds> planned_;  ///< of the points that have not ended
  units::Seconds planned_done_{};          ///< of the points that have ended
  units::Seconds done_{};                  ///< how long these took
  int index_ = 0;                          ///< of the point under way
  std::string what_;
  double last_line_ = 0;  ///< seconds after the beginning
  units::Nanoseconds begin_;
  std::optional<units::Nanoseconds> deadline_;
};

/// Estimates how much longer a run takes that has lasted `elapsed`. The points that ended were
/// expected to take `planned_done` and took `done`; the others, expected to take `planned_left`,
/// are assumed to deviate by the same factor. The result never exceeds the time to the deadline.
/// Absent without a plan.
[[nodiscard]] std::optional<units::Seconds> expected_left(
    units::Seconds elapsed, units::Seconds done, units::Seconds planned_done,
    units::Seconds planned_left, std::optional<units::Seconds> until_deadline);

/// A decorator of an executor. It lets the activity know each session while that exists, where the
/// session is, and which calls it has made with which ranks.
class WatchedExecutor final : public executor::Executor {
 public:
  /// Ranks are named by their numbers in `world`. The arguments must outlive this object and its
  /// sessions.
  WatchedExecutor(executor::Executor& inner, Activity& activity, const comm::Communicator& world)
      : inner_(inner), activity_(activity), world_(world) {}

  [[nodiscard]] const executor::Description& describe() const override { return inner_.describe(); }
  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<executor::Session> prepare(
      const program::ProgramSet& set, const comm::Communicator& point,
      const executor::SessionOptions& options) override;

 private:
  executor::Executor& inner_;
  Activity& activity_;
  const comm::Communicator& world_;
};

}  // namespace isoscale::runner
