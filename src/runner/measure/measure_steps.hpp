// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "program/program.hpp"
#include "results/run_data.hpp"
#include "runner/plan/step_loop.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Plays a point's step repeatedly until its time is known well enough, and keeps one rank's record
/// of it; then plays the step without communication.
namespace isoscale::runner {

/// The classes by which op times are summed.
enum class OpClass : std::uint8_t { gemm, other_compute, copies, communication };

/// Returns the class of each op of a program.
[[nodiscard]] std::vector<OpClass> op_classes(const program::Program& program);

/// Seconds that the ops of one traced step took on one rank, summed by class. Ops on different
/// streams overlap, so their total may exceed the step.
struct StepSums {
  std::uint32_t step = 0;  ///< number among all steps of the point
  double gemm = 0, other_compute = 0, copies = 0, communication = 0;
  bool operator==(const StepSums&) const = default;
};

/// Sums up the spans of a step. `classes` has an entry for each op that a span names.
[[nodiscard]] StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                              std::span<const OpClass> classes);

/// The state of the loop between two blocks.
struct Standing {
  std::size_t steps = 0;
  std::size_t traced = 0;   ///< of `steps`
  std::size_t counted = 0;  ///< of `steps`, those that count for the step time
  units::Seconds elapsed;
  std::optional<double> half_width;  ///< relative, as the last look found it
};
/// A callback on every rank between blocks.
using OnBlock = std::function<void(const Standing&)>;

/// The number of steps whose op sums are kept, evenly spread.
inline constexpr std::size_t most_op_sums = 512;

/// One rank's record of the loop.
struct Record {
  std::vector<double> step_times;  ///< this rank's, seconds, all steps
  std::vector<std::uint8_t> traced, dropped;
  std::size_t warm_up_steps = 0;
  units::Nanoseconds begin, end;  ///< of the first and the last step, this rank's clock
  std::string warm_up_rule;       ///< the rule that ended warm-up
  std::string stopped_because;    ///< "precision" or "max-time"
  results::Looks looks;
  std::vector<timeline::StepTrace> traces;  ///< kept traced steps, this rank's clock, rank unset
  std::vector<StepSums> op_sums;            ///< of traced steps that count, see most_op_sums
};

/// The role of a rank in the statistics: ranks of the point count; ranks of its replicas only play
/// along.
enum class Share : std::uint8_t { in_point, replica };

/// Collective over `active`, the ranks of the point and of its replicas. All play the same number
/// of steps, in the blocks of StepLoop, and agree between blocks whether to continue. Of the traced
/// steps, those are kept whole that are spread most evenly over all blocks. `step` is this rank's
/// program, that of the session, whose setup has been played.
[[nodiscard]] Record measure(executor::Session& session, const program::Program& step,
                             const comm::Communicator& active, Share share, const Effort& effort,
                             const OnBlock& on_block);

/// Drops entries, ascending by `step`, until `most` are left. Each time it drops the entry whose
/// neighbours are closest to each other, never the first or the last. Entries that were added one
/// by one are then spread evenly over all steps so far. If two are left and `most` is one, the
/// first goes.
template <class Entry>
void thin_to(std::vector<Entry>& entries, std::size_t most) {
  while (entries.size() > most) {
    const auto gap = [&](std::size_t i) { return entries[i + 1].step - entries[i - 1].step; };
    std::size_t crowded = entries.size() > 2 ? 1 : 0;
    for (std::size_t i = 2; i + 1 < entries.size(); ++i) {
      if (gap(i) < gap(crowded)) crowded = i;
    }
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(crowded));
  }
}

/// Collective over `active`: all play the section `solo` of `program`, which add_solo_step has
/// appended, `plays` times at the same time. Returns, for each op of the program's first step, the
/// median duration of the plays without the first one; 0 for communication.
[[nodiscard]] std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                                           const program::RankProgram& program,
                                                           program::Section solo,
                                                           const comm::Communicator& active,
                                                           int plays);

}  // namespace isoscale::runner
