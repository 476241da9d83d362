// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "program/program.hpp"
#include "results/records/run_data.hpp"
#include "runner/measure/measure_steps.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/step_loop.hpp"
#include "settings/run_config.hpp"

namespace isoscale::runner::watch {
class Progress;
}

namespace isoscale::runner::measure {

/// The objects of a run that are needed to measure any of its points.
struct PointContext {
  const settings::RunConfig& config;
  const plan::Site& site;
  std::span<const machine::MachineFacts> facts;
  const comm::Communicator& world;
  executor::Executor& executor;
  plan::Effort effort;
  watch::Progress& progress;  ///< prints on world rank 0 only
  /// The facts of all ranks, indexed by world rank. Only world rank 0 has them; on other ranks the
  /// span is empty. From these facts world rank 0 tells which kind of link connects two ranks.
  std::span<const results::RankFacts> rank_facts{};

  /// Returns the UUID of the GPU that this rank uses; "" if it uses none.
  [[nodiscard]] std::string gpu_uuid() const;
};

/// Sets the status and the reason with which the point ends.
void end_as(results::PointStatus status, std::string reason, results::PointData& data);

/// A point that is being measured, as one rank sees it. Ranks that the point does not need may run
/// a copy of it at the same time.
struct MeasuredPoint {
  const plan::PlannedPoint& planned;
  const PointContext& context;
  /// The ranks of the point or, on a rank that plays a copy, of this copy.
  const comm::Communicator& sub_world;
  const comm::Communicator& active;  ///< the ranks of the point and of all its copies
  /// The results, complete on rank 0 of the point; the status is valid on all ranks of `active`.
  results::PointData& data;
  program::Faults faults{};  ///< faults to inject on this rank
  Share share = Share::in_point;

  [[nodiscard]] bool in_point() const { return share == Share::in_point; }
  /// True on rank 0 of the point, and on rank 0 of each copy.
  [[nodiscard]] bool leads() const { return sub_world.rank() == 0; }

  /// Collective over `active`: the point fails if `problem` is not empty on any of these ranks.
  /// Returns true on all ranks if it is empty on all.
  [[nodiscard]] bool agreed(const std::string& problem) const;

  /// The result of prepare(): a session, or the reason why the executor cannot play the programs.
  /// If it cannot on one rank, all ranks have a reason and no session: their own reason or, if
  /// they have none, that of another rank. Both are empty if the point has failed.
  struct Prepared {
    executor::SessionPtr session{};
    std::string unsupported{};
  };
  /// Collective over `active`: prepares a session for the programs `set` on the communicator
  /// `ranks`, with the faults that are injected on this rank. If the executor does not support the
  /// programs, the result says so; any other problem fails the point.
  [[nodiscard]] Prepared prepare(const program::ProgramSet& set, const comm::Communicator& ranks,
                                 program::SessionOptions options = {}) const;
};

/// The reason that is stored for points which are verified but not measured.
inline constexpr const char* shared_gpu_reason = "ranks share a GPU: verified, not measured";

}  // namespace isoscale::runner::measure
