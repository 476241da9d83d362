// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "comm/world.hpp"

namespace isoscale::comm {

/// Names the kernel and the time namespace that this process' steady clock belongs to; "" when the
/// system does not tell.
[[nodiscard]] std::string clock_identity();

/// Whether a rank takes its offset from round trips or shares rank 0's clock.
enum class ClockSource : std::int64_t { shared, measured };

/// Collective. The offset of every rank whose `source` is measured, by `rounds` round trips with
/// rank 0 (at least 1); the others get 0.
[[nodiscard]] ClockOffset offset_by_round_trips(const Communicator& communicator,
                                                ClockSource source, int rounds);

}  // namespace isoscale::comm
