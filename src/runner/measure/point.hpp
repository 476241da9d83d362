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

/// The place of this rank in a point that is being measured.
struct PointRanks {
  const comm::Communicator& sub_world;  ///< ranks of the point, or of this rank's copy of it
  const comm::Communicator& active;     ///< the ranks of the point and of its copies
  program::Faults faults{};             ///< faults to inject on this rank
  Share share = Share::in_point;

  [[nodiscard]] bool in_point() const { return share == Share::in_point; }

  /// Either a session, or the reason why the executor cannot play the programs, the same on all
  /// ranks. If the point has failed, both are empty.
  struct Prepared {
    std::unique_ptr<executor::Session> session{};
    std::string unsupported{};
  };

  /// Collective over `active`: fails the point if any rank has a problem. Returns true on all ranks
  /// if no rank has one.
  [[nodiscard]] bool agreed(const std::string& problem, results::PointData& data) const;
  /// Collective over `active`: prepares a session of `ranks`. Any problem but an unsupported
  /// program fails the point.
  [[nodiscard]] Prepared prepare(executor::Executor& executor, const program::ProgramSet& set,
                                 const comm::Communicator& ranks, program::SessionOptions options,
                                 results::PointData& data) const;
};

/// Ends the point with this status and its reason.
void end_as(results::PointStatus status, std::string reason, results::PointData& data);

/// The reason of points that are verified but not measured.
inline constexpr const char* shared_gpu_reason = "ranks share a GPU: verified, not measured";

}  // namespace isoscale::runner::measure
