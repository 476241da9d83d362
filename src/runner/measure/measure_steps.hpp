// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
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

/// Plays a point's step repeatedly until the step time is precise enough, and keeps one rank's
/// record of all steps; then plays the step without communication.
namespace isoscale::runner::measure {

/// The classes by which op times are summed.
enum class OpClass : std::uint8_t { gemm, other_compute, copies, communication };

/// Returns the class of each op of a program.
[[nodiscard]] std::vector<OpClass> op_classes(const program::Program& program);

/// The time that the ops of each class took in one traced step on one rank, in seconds. Ops on
/// different streams overlap, so the sum of all classes may exceed the step's time.
struct StepSums {
  std::uint32_t step = 0;  ///< number among all steps of the point
  double gemm = 0, other_compute = 0, copies = 0, communication = 0;
  bool operator==(const StepSums&) const = default;
};

/// Returns the op times of a step by class. `classes` has an entry for each op that may occur in
/// `spans`.
[[nodiscard]] StepSums sum_up(std::uint32_t step, std::span<const timeline::Span> spans,
                              std::span<const OpClass> classes);

/// Called on every rank between blocks.
using OnBlock = std::function<void(const plan::StepLoop& loop)>;

/// The largest number of steps whose op sums are kept; they are spread evenly over all steps.
inline constexpr std::size_t most_op_sums = 512;

/// The record of all steps of a point on one rank.
struct Record {
  std::vector<double> step_times;             ///< seconds of each step on this rank
  std::vector<std::uint8_t> traced, dropped;  ///< by step; dropped: the step does not count
  std::size_t warm_up_steps = 0;
  units::Nanoseconds begin, end;  ///< begin of the first step, end of the last; this rank's clock
  std::string warm_up_rule;       ///< the rule that ended warm-up
  std::string stopped_because;    ///< "precision" or "max-time"
  results::Looks looks;
  std::vector<timeline::StepTrace> traces;  ///< kept steps, on this rank's clock; rank not set
  std::vector<StepSums> op_sums;  ///< one for each traced step that counts; limited to most_op_sums
};

/// in_point: the rank belongs to the point, and its times count. replica: it plays in a copy of the
/// point, and its times do not count.
enum class Share : std::uint8_t { in_point, replica };

/// Collective over `active`, the ranks of the point and of its replicas: plays steps until the step
/// time is precise enough, and returns this rank's record. All ranks play the same number of steps,
/// in the blocks that StepLoop gives, and agree after each block whether to continue. `step` is
/// this rank's program of the session, whose setup must have been played. The spans of up to
/// Effort::trace_steps traced steps are kept, spread evenly over the loop.
[[nodiscard]] Record measure(executor::Session& session, const program::Program& step,
                             const comm::Communicator& active, Share share,
                             const plan::Effort& effort, const OnBlock& on_block);

/// Drops entries until `most` are left. `entries` are ascending by `step`. The entry whose
/// neighbours are closest to each other is dropped first, never the first or the last one, so that
/// entries which are added one by one stay evenly spread. If two entries are left and `most` is 1,
/// the first is dropped.
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

/// Collective over `active`: all ranks play the section `solo`, which add_solo_step() has added to
/// `program`, `plays` times at the same time. Returns, for each op of the program's first step, its
/// median duration over all plays but the first; 0 for communication.
[[nodiscard]] std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                                           const program::RankProgram& program,
                                                           program::Section solo,
                                                           const comm::Communicator& active,
                                                           int plays);

}  // namespace isoscale::runner::measure
