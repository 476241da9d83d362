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

/// A session whose position in its program is watched, see WatchedExecutor.
struct WatchedSession {
  const executor::Session* session = nullptr;  ///< not owned
  mesh::Shape mesh{};
  int rank = 0;                              ///< within the mesh
  std::vector<int> world_ranks{};            ///< rank of the launch, for each rank of the mesh
  std::vector<program::Outline> outlines{};  ///< of this rank's program, by section

  [[nodiscard]] executor::Whereabouts where() const;
  /// Adds to `state` the ops that the session's streams are in, and its progress on each
  /// communicator.
  void describe(RankState& state) const;
};

/// The current activity of this rank. The working thread writes it, and the supervisor's thread
/// reads it.
class Activity {
 public:
  explicit Activity(int rank) : rank_(rank), calls_(std::make_shared<comm::CallCount>()) {}

  void doing(std::string_view what);
  void at_point(std::string_view what);  ///< a point begins; shown before the text of doing()
  /// Notes an error on this rank alone, and waits until the supervisor ends the job. Returns only
  /// if there is no supervisor.
  void fail(std::string_view why);
  void set_watched();
  [[nodiscard]] bool has_failed() const;

  /// The rank counts as idle while an Idle object exists: it waits for other ranks, or until a
  /// certain time. If `activity` is null, nothing is noted.
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
  /// Returns the counter of the runner's own collective calls.
  [[nodiscard]] std::shared_ptr<comm::CallCount> calls() const { return calls_; }

  /// A snapshot of this rank's progress. If two snapshots are equal, the rank made no progress
  /// between them.
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
  std::shared_ptr<comm::CallCount> calls_;  ///< never replaced; its counters are atomic
  mutable std::mutex mutex_;                ///< guards the members below
  std::string point_, doing_ = "starting", failure_;
  std::uint64_t changes_ = 0;
  int idle_count_ = 0;
  bool is_watched_ = false;
  std::vector<WatchedSession> sessions_;
};

/// Shows the progress of a run on standard error: one line that is updated on a terminal, else
/// plain lines.
class Progress {
 public:
  enum class Style : std::uint8_t { live, lines, silent };

  /// `points` is the number of points in the plan. `planned` holds the expected time of each point
  /// that this launch measures, by index. `deadline` is when the budget is used up; absent without
  /// a budget.
  Progress(Style style, int points, std::map<int, units::Seconds> planned = {},
           std::optional<units::Nanoseconds> deadline = std::nullopt);
  /// Returns the style for standard error: live on a terminal, else lines.
  [[nodiscard]] static Style detect();

  /// Makes this object also note the progress in `activity`, even if nothing is printed.
  void tell(Activity* activity) { activity_ = activity; }
  [[nodiscard]] Activity* activity() const { return activity_; }

  void begin_point(int index, std::string_view what);
  /// Notes the present activity. In a log, it is printed every ten seconds at most.
  void doing(std::string_view what);
  void end_point(std::string_view outcome);
  void finish();

 private:
  void show(std::string_view state);
  [[nodiscard]] std::string time_text() const;

  Style style_;
  Activity* activity_ = nullptr;
  int points_;
  std::map<int, units::Seconds> planned_;  ///< points that have not ended
  units::Seconds planned_done_{};          ///< expected time of points that have ended
  units::Seconds done_{};                  ///< time that these points took
  int index_ = 0;                          ///< index of the point under way
  std::string what_;
  double last_line_ = 0;  ///< seconds since the begin
  units::Nanoseconds begin_;
  std::optional<units::Nanoseconds> deadline_;
};

/// Estimates the remaining time of a run that has lasted `elapsed`. The points that have ended took
/// `done`, and were expected to take `planned_done`. The remaining points are expected to take
/// `planned_left`, which is scaled by done / planned_done. The time since the last point ended is
/// subtracted. The result is at least 0, and at most the time until the deadline. Absent if there
/// is no plan.
[[nodiscard]] std::optional<units::Seconds> expected_left(
    units::Seconds elapsed, units::Seconds done, units::Seconds planned_done,
    units::Seconds planned_left, std::optional<units::Seconds> until_deadline);

/// Wraps an executor so that an activity knows its sessions while they exist, their positions, and
/// the calls that they have made on each communicator. The sessions themselves are not wrapped.
class WatchedExecutor final : public executor::Executor {
 public:
  /// Reports name ranks by their rank in `world`. The arguments must outlive this object and its
  /// sessions.
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
