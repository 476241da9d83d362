// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
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

/// The environment of a run in which all of its points are measured.
struct PointContext {
  const settings::RunConfig& config;
  const plan::Site& site;
  std::span<const machine::MachineFacts> facts;
  const comm::Communicator& world;
  executor::Executor& executor;
  plan::Effort effort;
  watch::Progress& progress;  ///< prints on world rank 0 only
  /// The facts of all ranks, indexed by world rank. Only world rank 0 has them; on other ranks the
  /// span is empty, and the links between ranks are not classified.
  std::span<const results::RankFacts> rank_facts{};

  /// Returns the UUID of this rank's GPU; "" if it has none.
  [[nodiscard]] std::string gpu_uuid() const;
};

/// Ends the point with this status and its reason.
void end_as(results::PointStatus status, std::string reason, results::PointData& data);

/// A point that is being measured, on a rank which plays in the point or in a copy of it.
struct MeasuredPoint {
  const plan::PlannedPoint& planned;
  const PointContext& context;
  const comm::Communicator& sub_world;  ///< ranks of the point, or of this rank's copy of it
  const comm::Communicator& active;     ///< the ranks of the point and of its copies
  /// The results of the point, which are complete on its rank 0. All ranks of `active` have the
  /// status.
  results::PointData& data;
  program::Faults faults{};  ///< faults to inject on this rank
  Share share = Share::in_point;

  [[nodiscard]] bool in_point() const { return share == Share::in_point; }
  /// True on rank 0 of the point or of a copy.
  [[nodiscard]] bool leads() const { return sub_world.rank() == 0; }

  /// Collective over `active`: fails the point if any rank has a problem. Returns true on all ranks
  /// if no rank has one.
  [[nodiscard]] bool agreed(const std::string& problem) const;

  /// Either a session, or the reason why the executor cannot play the programs, the same on all
  /// ranks. If the point has failed, both are empty.
  struct Prepared {
    executor::SessionPtr session{};
    std::string unsupported{};
  };
  /// Collective over `active`: prepares a session of `ranks`, with the faults of this rank. Any
  /// problem but an unsupported program fails the point.
  [[nodiscard]] Prepared prepare(const program::ProgramSet& set, const comm::Communicator& ranks,
                                 program::SessionOptions options = {}) const;
};

/// The reason of points that are verified but not measured.
inline constexpr const char* shared_gpu_reason = "ranks share a GPU: verified, not measured";

}  // namespace isoscale::runner::measure
