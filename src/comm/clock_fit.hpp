// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "units/quantity.hpp"

/// How one clock runs against another, from messages that both saw; pure arithmetic.
namespace isoscale::comm {

/// A question to rank 0 and its answer, on two clocks.
struct RoundTrip {
  units::Nanoseconds sent{}, received{};  ///< this rank's clock
  units::Nanoseconds remote{};            ///< rank 0's, read somewhere in between
};

/// This rank's clock minus rank 0's, as a straight line over this rank's clock.
struct ClockFit {
  units::Nanoseconds reference{};  ///< a time on this rank's clock
  units::Nanoseconds offset{};     ///< at `reference`
  double drift = 0;                ///< seconds of offset per second of this rank's clock
  units::Nanoseconds error{};      ///< bound on the line's error between the round trips it is from

  /// What rank 0's clock showed when this rank's showed `own`.
  [[nodiscard]] units::Nanoseconds to_rank_0(units::Nanoseconds own) const;
};

/// The line through round trips at two ends of what is to be aligned; neither is empty. Each trip
/// bounds the offset from both sides, whatever its two ways took: [sent - remote, received -
/// remote]. Of each end only the trips of up to twice the least delay are kept: a longer one waited
/// somewhere, says little, and may be so far from the others that drift matters. What all bounds
/// that were kept leave is the error: half of the least trip or less. To it comes what a rate that
/// wanders between the ends may do.
[[nodiscard]] ClockFit fit_clock(std::span<const RoundTrip> before,
                                 std::span<const RoundTrip> after, units::Nanoseconds reference);

/// What is wrong with a clock on purpose.
struct ClockFault {
  units::Nanoseconds offset{};  ///< it is fast by so much
  double drift = 0;             ///< and gains so many seconds per second
};

/// What a clock with a fault shows at `time`; the fault's offset is that at `since`.
[[nodiscard]] units::Nanoseconds misread(const ClockFault& fault, units::Nanoseconds since,
                                         units::Nanoseconds time);

}  // namespace isoscale::comm
