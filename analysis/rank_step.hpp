// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// The exclusive parts of one step on one rank. `late` is what becomes bubble or wait.
struct RankStep {
  units::Nanoseconds compute, copies, transfer;
  units::Nanoseconds wait;  ///< in collectives, for their last member
  units::Nanoseconds late;  ///< in exchanges, for their partners, and nothing above
  units::Nanoseconds gap, step;
  units::Nanoseconds hidden;       ///< communication while compute or copies ran
  units::Nanoseconds unaccounted;  ///< claimed by spans that cannot have run then
};

enum class Streams : std::uint8_t { as_written, folded };

/// Splits a step by interval arithmetic, so that each moment is counted once. `last_arrival[op]` is
/// when the last partner of op had begun. `trace` has passed check_trace.
[[nodiscard]] RankStep split(const program::Outline& outline, const timeline::StepTrace& trace,
                             std::span<const units::Nanoseconds> last_arrival, Streams streams);

}  // namespace isoscale::analysis
