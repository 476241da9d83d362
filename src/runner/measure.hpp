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
#include "runner/step_loop.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Playing a point's step again and again until enough is known.
namespace isoscale::runner {

/// Where the loop is.
struct Standing {
  std::size_t steps = 0;
  std::size_t traced = 0;   ///< of these
  std::size_t counted = 0;  ///< of these, that have a say in the step time
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
/// number of steps, in the blocks that StepLoop says; between blocks they agree on going on. Of the
/// traced steps, those are kept whole that lie most evenly over all blocks. `step` is this rank's
/// program, that of the session, whose setup has been played.
[[nodiscard]] Record measure(executor::Session& session, const program::Program& step,
                             const comm::Communicator& active, Share share, const Effort& effort,
                             const OnBlock& on_block);

}  // namespace isoscale::runner
