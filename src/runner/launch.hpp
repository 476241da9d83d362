// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "comm/world.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "results/writer.hpp"
#include "runner/budget.hpp"
#include "runner/plan.hpp"
#include "runner/point.hpp"
#include "runner/progress.hpp"
#include "runner/run.hpp"
#include "runner/site.hpp"
#include "system/facts.hpp"

namespace isoscale::runner {

/// One launch once it is known what is to be done: makes the plan, opens the file, measures point
/// after point.
class Launch {
 public:
  struct Setting {
    const config::RunConfig& config;
    const Services& services;
    const comm::Communicator& world;
    executor::Executor& executor;
    std::span<const system::MachineFacts> facts;  ///< by rank
    units::Nanoseconds begin;                     ///< of the run, as --budget counts
    std::optional<std::string> device_reason{};   ///< of --device auto: why it is this one
  };

  /// `earlier`: on rank 0, the run that is gone on with, if one is. Throws base::UsageError where
  /// make_plan() does. What `setting` refers to must outlive the launch.
  Launch(const Setting& setting, std::optional<results::RunData> earlier);

  /// Collective; once.
  [[nodiscard]] Outcome measure();

 private:
  [[nodiscard]] units::Seconds elapsed() const;
  /// When the budget, if there is one, is used up.
  [[nodiscard]] std::optional<units::Nanoseconds> deadline() const;
  /// Makes the file ready for points, and says which are wanted. False, on every rank, when a run
  /// that was to be gone on with lacks nothing.
  bool opened();
  void create();
  bool reopen();
  [[nodiscard]] std::optional<Turn> agreed_next(const Turns& turns) const;
  [[nodiscard]] PointContext context(const Turn& turn, Progress& progress) const;
  results::PointData measure_point(const Turn& turn, Progress& progress);
  void leave_out(const Turns& turns, Progress& progress);
  void finish(const Turns& turns);
  void warn_of_time_limit() const;
  void add_idle_injections();

  Setting setting_;
  Site site_;
  Plan plan_;
  std::filesystem::path path_;
  std::set<int> wanted_;  ///< points to measure; right on rank 0
  // On rank 0:
  std::optional<results::RunData> earlier_;
  results::RunData header_;
  std::vector<results::RankFacts> rank_facts_;  ///< of this launch
  results::RunData measured_;                   ///< the points that calibrate
  std::unique_ptr<results::RunWriter> writer_;
};

}  // namespace isoscale::runner
