// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "program/program.hpp"
#include "results/records/run_data.hpp"
#include "runner/plan/step_loop.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Measures a point's step on one rank: plays the step until its time is known precisely enough and
/// records all steps, then plays the step without communication.
namespace isoscale::runner::measure {

/// The times that the ops of each class took in one traced step on one rank. Ops on different
/// streams overlap, so the sum over all classes may exceed the step's time.
struct StepSums {
  std::uint32_t step = 0;  ///< number of the step among all steps of the point, from 0
  units::Nanoseconds gemm{}, other_compute{}, copies{}, communication{};
};

/// Adds up the durations of the ops of a step. `spans` has their times, and `program` the ops.
[[nodiscard]] StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                              const program::Program& program);

/// A function that is called on every rank after each block of steps that follows warm-up.
using OnBlock = std::function<void(const plan::StepLoop& loop)>;

/// The largest number of traced steps for which a StepSums is kept. If there are more, the kept
/// ones are spread evenly over the loop.
inline constexpr std::size_t most_op_sums = 512;

/// The record of all steps of a point on one rank.
struct Record {
  std::vector<double> step_times;  ///< seconds of each step on this rank
  /// Flags of each step. traced = 1 if it was traced. dropped = 1 if it is the first step of a
  /// block after warm-up and therefore does not count; warm-up steps, which never count, have 0.
  std::vector<std::uint8_t> traced, dropped;
  std::size_t warm_up_steps = 0;
  /// Start of the first step and end of the last, on this rank's clock.
  units::Nanoseconds begin, end;
  std::string warm_up_rule;     ///< the rule by which warm-up ended
  std::string stopped_because;  ///< the reason why the loop ended: "precision" or "max-time"
  results::Looks looks;
  /// The traced steps that are kept, in times of this rank's clock; their `rank` is 0.
  std::vector<timeline::StepTrace> traces;
  /// The op times of each traced step that counts; at most most_op_sums of them are kept.
  std::vector<StepSums> op_sums;
};

/// Tells how a rank takes part in measuring a point. in_point: it belongs to the point, and its
/// times count. replica: it plays in a copy of the point, and its times do not count.
enum class Share : std::uint8_t { in_point, replica };

/// Collective over `active`, the ranks of the point and of its copies: plays steps until the step
/// time is precise enough or the time for the point is used up, and returns this rank's record. All
/// ranks play the same number of steps, in the blocks of steps that StepLoop gives, and agree after
/// each block whether to continue. `step` is this rank's program for one step. The setup section of
/// the session must have been played. The spans of up to Effort::trace_steps traced steps are kept,
/// evenly spread.
[[nodiscard]] Record measure(executor::Session& session, const program::Program& step,
                             const comm::Communicator& active, Share share,
                             const plan::Effort& effort, const OnBlock& on_block);

/// Removes entries until at most `most` are left. `entries` are in ascending order of their member
/// `step`. Each time, the entry whose two neighbours are closest to each other is removed, so that
/// entries which are added one by one stay evenly spread. The first and the last entry are kept,
/// but if only these two are left and `most` is 1, the first is removed.
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

/// Collective over `active`: all ranks play the step without communication `plays` times, at the
/// same time. This step is the section `solo`, which add_solo_step() added to `program`. Returns
/// the median duration of each op of the first step, without the first play; 0 for communication.
[[nodiscard]] std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                                           const program::RankProgram& program,
                                                           program::Section solo,
                                                           const comm::Communicator& active,
                                                           int plays);

}  // namespace isoscale::runner::measure
