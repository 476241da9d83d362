// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// The exclusive share that one op has of a step on its rank.
struct OpShare {
  units::Nanoseconds own;      ///< compute, copies or transfer, by the op's kind
  units::Nanoseconds waiting;  ///< of communication: for its last partner
  units::Nanoseconds hidden;   ///< of communication: while compute or copies ran
  units::Nanoseconds gap;      ///< nothing ran, and this op was the next to begin
};

/// A stretch of a step that no category explains.
struct Unexplained {
  units::Nanoseconds begin, length;
  std::uint32_t after = 0;  ///< op that ended last before it; of no meaning when nothing had
};

/// The exclusive parts of one step on one rank. `late` is what becomes bubble or wait.
struct RankStep {
  units::Nanoseconds compute, copies, transfer;
  units::Nanoseconds wait;  ///< in collectives, for their last member
  units::Nanoseconds late;  ///< in exchanges, for their partners, and nothing above
  units::Nanoseconds gap, step;
  units::Nanoseconds hidden;         ///< communication while compute or copies ran
  units::Nanoseconds hidden_copies;  ///< copies while compute ran
  units::Nanoseconds unaccounted;    ///< in no category, or in one outside of the step
  Unexplained largest;               ///< the longest stretch in no category
};

enum class Streams : std::uint8_t { as_written, folded };

/// Splits a step so that each moment is counted once, by the priority compute, copies, transfer,
/// wait, late; of ops of one priority the one on the lowest stream has it. gap: nothing runs, but
/// an op is yet to begin. Time in which a span cannot have run (before the previous op of its
/// stream, or an op that it waits for, had ended) and what follows the last op are in none.
/// `waits[op]`: how long op waited for its last partner. `trace` has passed check_trace. `shares`
/// gets one entry per op.
[[nodiscard]] RankStep split(const program::Outline& outline, const timeline::StepTrace& trace,
                             std::span<const units::Nanoseconds> waits, Streams streams,
                             std::vector<OpShare>& shares);

}  // namespace isoscale::analysis
