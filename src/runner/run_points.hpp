// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "runner/measure/point_context.hpp"
#include "runner/plan/launch_site.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "runner/run.hpp"
#include "runner/run_file.hpp"
#include "runner/watch/activity_and_progress_line.hpp"
#include "runner/watch/supervisor.hpp"
#include "settings/run_config.hpp"

namespace isoscale::runner {

/// Collective over the world: verifies and measures one point (in measure_point.cpp). Ranks that do
/// not belong to the point sleep, or run copies of it. World rank 0 returns the complete result; on
/// other ranks only its status is valid.
[[nodiscard]] results::PointData run_point(const plan::PlannedPoint& point,
                                           const measure::PointContext& context);

/// One launch of a measurement. It makes the plan, opens the run file, and measures all points.
class Launch {
 public:
  struct Setting {
    const settings::RunConfig& config;
    const Services& services;
    const comm::Communicator& world;
    executor::Executor& executor;
    std::span<const machine::MachineFacts> facts;  ///< facts of the machine of every rank, by rank
    plan::Site site;
    units::Nanoseconds begin;  ///< start of the run, from which --budget counts
    /// The reason why --device auto chose this device; absent if the user named it.
    std::optional<std::string> device_reason{};
  };

  /// `earlier` is the run that --resume continues, on rank 0 only; absent for a new run. Throws
  /// base::UsageError like make_plan(). Objects in `setting` must outlive this object.
  Launch(const Setting& setting, std::optional<results::RunData> earlier);
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  /// Collective: measures all points that this launch has to measure. Must be called only once.
  [[nodiscard]] base::ExitCode measure();

 private:
  [[nodiscard]] units::Seconds elapsed() const;
  /// Returns the estimated time of each point that this launch has to measure, by point index.
  /// Points for which the budget will probably not suffice are left out.
  [[nodiscard]] std::map<int, units::Seconds> planned_times() const;
  /// Collective: opens the run file and determines which points this launch has to measure. Returns
  /// false on every rank if nothing is left to do: --resume was given, and the earlier run is
  /// complete and has no point to measure again.
  bool opened();
  void create();
  // These two functions are defined in resume.cpp.
  bool reopen();
  /// Returns the data of a point whose hang ended the earlier job, if the run file lacks it.
  [[nodiscard]] std::optional<results::PointData> unrecorded_hang() const;
  [[nodiscard]] base::ExitCode exit_code() const;
  [[nodiscard]] bool begin_next();
  [[nodiscard]] measure::PointContext context(const plan::Turn& turn);
  /// Called on rank 0 before a hang or a failure ends the job: records the current point as failed,
  /// unless the file already has it.
  void record_abort(const std::string& why);
  [[nodiscard]] results::PointData as_failed(int index, const std::string& why) const;
  results::PointData record(results::PointData data);
  results::PointData commit(results::PointData data);
  [[nodiscard]] std::unique_lock<std::timed_mutex> hold_file() const;
  void record_left_out();
  void finish();
  void warn_of_time_limit() const;

  Setting setting_;
  plan::Plan plan_;
  std::filesystem::path path_;
  /// Indices of the points that this launch has to measure; valid on rank 0 only.
  std::set<int> wanted_;
  /// Indices of wanted points that failed or hung in an earlier launch; used on rank 0 only.
  std::set<int> retried_;
  /// Indices of points that hung earlier and are not measured again; used on rank 0 only.
  std::set<int> left_hung_;
  std::optional<watch::Progress> progress_;
  std::optional<plan::Schedule> schedule_;
  /// The point that is being measured; changed only while the run file is locked.
  std::optional<plan::Turn> current_;
  int failed_ = 0;  ///< number of points that failed in this launch
  bool ends_soon_ = false;
  // The members below are used on rank 0 only.
  std::optional<results::RunData> earlier_;
  results::RunData header_;
  std::vector<results::RankFacts> rank_facts_;  ///< facts of the ranks of this launch
  /// The header and the points that have result rows, such as those of micro-benchmarks. The
  /// calibration is computed from them.
  results::RunData measured_;
  std::optional<RunFile> file_;
  std::optional<int> last_in_file_;  ///< index of the point that was written last
};

}  // namespace isoscale::runner
