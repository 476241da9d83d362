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

/// The progress of this rank. It is shown to the user, and the supervisor detects hangs by it.
namespace isoscale::runner::watch {

/// A session whose progress in its program is watched; WatchedExecutor adds it to an Activity.
struct WatchedSession {
  const executor::Session* session = nullptr;  ///< not owned
  mesh::Shape mesh{};
  int rank = 0;                    ///< this rank's number within the mesh
  std::vector<int> world_ranks{};  ///< ranks of the launch that play the session, in mesh order
  std::vector<program::Outline> outlines{};  ///< outlines of the sections of this rank's program

  [[nodiscard]] executor::Whereabouts where() const;
  /// Adds to `state` the ops that the session's streams are in, and its calls on each communicator.
  void describe(RankState& state) const;
};

/// The present activity of this rank. The working thread (the one that measures) writes it, and the
/// supervisor's thread reads it.
class Activity {
 public:
  explicit Activity(int rank) : rank_(rank), calls_(std::make_shared<comm::CallCount>()) {}

  void doing(std::string_view what);
  /// Notes that a point begins; its text is shown before that of doing().
  void at_point(std::string_view what);
  /// Notes an error that only this rank has, and waits until the supervisor ends the job. Returns
  /// only if no supervisor watches.
  void fail(std::string_view why);
  void set_watched();
  [[nodiscard]] bool has_failed() const;

  /// As long as an Idle object exists, this rank counts as idle, that is, it waits for other ranks
  /// or until a certain time. If `activity` is null, the object has no effect.
  class Idle {
   public:
    explicit Idle(Activity* activity);
    ~Idle();
    Idle(const Idle&) = delete;
    Idle& operator=(const Idle&) = delete;

   private:
    Activity* activity_;
  };

  void enter(WatchedSession session);
  void leave(const executor::Session* session);
  /// Returns the counter of collective calls that the runner makes itself, outside of programs.
  [[nodiscard]] std::shared_ptr<comm::CallCount> calls() const { return calls_; }

  /// A snapshot of this rank's progress. If a later one is equal, the rank has made no progress.
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
  /// The counters are atomic and the pointer never changes, so they need no lock.
  std::shared_ptr<comm::CallCount> calls_;
  mutable std::mutex mutex_;  ///< guards the members below
  std::string point_, doing_ = "starting", failure_;
  std::uint64_t changes_ = 0;
  int idle_count_ = 0;
  bool is_watched_ = false;
  std::vector<WatchedSession> sessions_;
};

/// Shows the progress of a run on standard error: on a terminal as one line that is updated,
/// otherwise as separate lines.
class Progress {
 public:
  enum class Style : std::uint8_t { live, lines, silent };

  /// `points` is the number of points in the plan. `planned` has the expected time of each point
  /// that this launch measures, by index in the plan. `deadline` is the time at which the budget is
  /// used up; absent without a budget.
  Progress(Style style, int points, std::map<int, units::Seconds> planned = {},
           std::optional<units::Nanoseconds> deadline = std::nullopt);
  /// Returns the style for standard error: `live` for a terminal, otherwise `lines`.
  [[nodiscard]] static Style detect();

  /// From now on, progress is also noted in `activity`, even in the silent style.
  void tell(Activity* activity) { activity_ = activity; }
  [[nodiscard]] Activity* activity() const { return activity_; }

  void begin_point(int index, std::string_view what);
  /// Notes what is being done. Outside a terminal, a line is printed every ten seconds at most.
  void doing(std::string_view what);
  void end_point(std::string_view outcome);
  void finish();

 private:
  void show(std::string_view state);
  [[nodiscard]] std::string line(std::string_view state) const;
  [[nodiscard]] std::string time_text() const;

  Style style_;
  Activity* activity_ = nullptr;
  int points_;
  /// Expected times of the points that have not ended, by index.
  std::map<int, units::Seconds> planned_;
  units::Seconds planned_done_{};  ///< expected time of all points that have ended
  units::Seconds done_{};          ///< time that these points really took
  int index_ = 0;                  ///< index of the point that is being measured
  std::string what_;
  double last_line_ = 0;  ///< time of the last printed line, in seconds since `begin_`
  units::Nanoseconds begin_;
  std::optional<units::Nanoseconds> deadline_;
};

/// Estimates how much longer a run takes that has lasted `elapsed`. The points that have ended took
/// `done` and were expected to take `planned_done`. The remaining points are expected to take
/// `planned_left`; this time is multiplied by done / planned_done unless planned_done is 0, and the
/// time since the end of the last point, elapsed - done, is subtracted. The result is at least 0
/// and at most `until_deadline`. Absent if no point has an expected time.
[[nodiscard]] std::optional<units::Seconds> expected_left(
    units::Seconds elapsed, units::Seconds done, units::Seconds planned_done,
    units::Seconds planned_left, std::optional<units::Seconds> until_deadline);

/// Passes all calls on to another executor. While a session exists, the Activity object knows the
/// session's position and its calls on each communicator. Sessions themselves are not wrapped.
class WatchedExecutor final : public executor::Executor {
 public:
  /// Reports name ranks by their numbers in `world`. All arguments must outlive all sessions.
  WatchedExecutor(executor::Executor& inner, Activity& activity, const comm::Communicator& world)
      : inner_(inner), activity_(activity), world_(world) {}

  [[nodiscard]] const executor::Description& describe() const override { return inner_.describe(); }
  [[nodiscard]] executor::SessionPtr prepare(const program::ProgramSet& set,
                                             const comm::Communicator& point,
                                             const executor::SessionOptions& options) override;

 private:
  executor::Executor& inner_;
  Activity& activity_;
  const comm::Communicator& world_;
};

}  // namespace isoscale::runner::watch
