// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "results/run_data.hpp"
#include "runner/op_sums.hpp"
#include "runner/stop_rule.hpp"
#include "runner/warm_up.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Playing a point's step again and again until enough is known.
namespace isoscale::runner {

/// When to stop, and how much to trace.
struct Effort {
  double precision = 0.01;      ///< relative half-width of the interval to stop at
  units::Seconds max_time{30};  ///< of the whole loop, warm-up included
  int trace_steps = 4;          ///< traced steps to keep; 0: none is traced
  /// Pure functions over step times that the loop judges by; the last two may be absent, see
  /// StopRule and WarmUp.
  HalfWidth half_width;
  NominalConfidence nominal_confidence{};
  LastChange last_change{};
};

/// Where the loop is.
struct Standing {
  std::size_t steps = 0;
  std::size_t traced = 0;  ///< of these
  units::Seconds elapsed;
  std::optional<double> half_width;  ///< relative, as the last look found it
};
/// Called on every rank, between blocks.
using OnBlock = std::function<void(const Standing&)>;

/// Op sums are kept of so many steps, evenly spread.
inline constexpr std::size_t most_op_sums = 512;

/// One rank's record of the loop.
struct Record {
  std::vector<double> step_times;  ///< this rank's, seconds, all steps
  std::vector<std::uint8_t> traced, dropped;
  std::size_t warm_up_steps = 0;
  units::Nanoseconds begin, end;  ///< of the first and the last step, this rank's clock
  std::string warm_up_rule;       ///< what ended warm-up
  std::string stopped_because;    ///< "precision" or "max-time"
  results::Looks looks;
  std::vector<timeline::StepTrace> traces;  ///< kept traced steps, this rank's clock, rank unset
  std::vector<StepSums> op_sums;            ///< of traced steps that count, see most_op_sums
};

/// Whether a rank has a say in the statistics, or follows.
enum class Share : std::uint8_t { in_point, replica };

/// Collective over `active`: the ranks of the point and of its replicas, which all play the same
/// number of steps. Steps come in blocks; between blocks the ranks agree on going on, so the first
/// step of each block starts from a standstill and is dropped. With tracing, an untraced and a
/// traced block of as many steps make a pair, their order swapped from pair to pair: six pairs
/// until the samples are looked at, then one for every three blocks alone; where six would take
/// more than half of the time, fewer, and none later. Of the traced steps, those are kept whole
/// that lie most evenly over all pairs. However little time there is, one step warms up, one counts
/// and at most two are traced. `step` is this rank's program, that of the session, whose setup has
/// been played.
[[nodiscard]] Record measure(executor::Session& session, const program::Program& step,
                             const comm::Communicator& active, Share share, const Effort& effort,
                             const OnBlock& on_block);

}  // namespace isoscale::runner
