// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/executor.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Playing a point's step again and again until enough is known.
namespace isoscale::runner {

/// When to stop, and how much to trace.
struct Effort {
  double precision = 0.01;      ///< relative half-width of the interval to stop at
  units::Seconds max_time{30};  ///< of the whole loop, warm-up included
  int trace_steps = 4;          ///< traced steps to keep
  /// Relative half-width of the median's interval over step times; absent while there is none.
  std::function<std::optional<double>(std::span<const double>)> half_width;
};

/// How often the loop reports where it is; called on every rank, between blocks.
using OnBlock = std::function<void(std::size_t steps, units::Seconds elapsed)>;

/// One rank's record of the loop.
struct Record {
  std::vector<double> step_times;  ///< this rank's, seconds, all steps
  std::vector<std::uint8_t> traced, dropped;
  std::size_t warm_up_steps = 0;
  units::Nanoseconds begin, end;            ///< of the first and the last step, this rank's clock
  std::string stopped_because;              ///< "precision" or "max-time"
  std::vector<timeline::StepTrace> traces;  ///< kept traced steps, this rank's clock, rank unset
};

/// Whether a rank has a say in the statistics, or follows.
enum class Share : std::uint8_t { in_point, replica };

/// Collective over `active`: the ranks of the point and of its replicas, which all play the same
/// number of steps. Steps come in blocks, untraced and traced in turn; between blocks the ranks
/// agree on going on, so the first step of each block starts from a standstill and is dropped.
/// However little time there is, one step warms up, one counts and the traced ones are played. The
/// setup has been played.
[[nodiscard]] Record measure(executor::Session& session, const comm::Communicator& active,
                             Share share, const Effort& effort, const OnBlock& on_block);

}  // namespace isoscale::runner
