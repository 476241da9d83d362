// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "units/quantity.hpp"

/// Fits the offset and drift of each rank's clock against rank 0's to round trips of messages,
/// which are made before and after a measurement.
namespace isoscale::comm {

/// A question to rank 0 and its answer, with the times of both clocks.
struct RoundTrip {
  units::Nanoseconds sent{}, received{};  ///< this rank's clock
  units::Nanoseconds remote{};            ///< rank 0's clock, read at some time in between
};

/// This rank's clock minus rank 0's, as a straight line over this rank's clock.
struct ClockFit {
  units::Nanoseconds reference{};  ///< a time on this rank's clock
  units::Nanoseconds offset{};     ///< at `reference`
  double drift = 0;                ///< seconds of offset per second of this rank's clock
  units::Nanoseconds error{};      ///< bound on the line's error between the fitted round trips

  /// Returns the time that rank 0's clock showed when this rank's clock showed `own`.
  [[nodiscard]] units::Nanoseconds to_rank_0(units::Nanoseconds own) const;
};

/// Fits the line to round trips before and after the period to be aligned; neither may be empty.
/// Each trip bounds the offset from both sides, however its time was split between the two
/// directions: [sent - remote, received - remote]. Of the trips before, and of those after, only
/// the ones of up to twice the shortest delay are kept: a longer one waited somewhere, says little,
/// and may be so far from the others that drift matters. The error is half of the interval that all
/// kept bounds allow, so at most half of the shortest trip, plus what a changing rate may add
/// between the two sets of trips.
[[nodiscard]] ClockFit fit_clock(std::span<const RoundTrip> before,
                                 std::span<const RoundTrip> after, units::Nanoseconds reference);

/// An error that a clock is given on purpose, to test the fit.
struct ClockFault {
  units::Nanoseconds offset{};  ///< the clock is ahead by this much
  double drift = 0;             ///< and gains this many seconds per second
};

/// Returns the time that a clock with a fault shows at `time`; the fault's offset holds at `since`.
[[nodiscard]] units::Nanoseconds misread(const ClockFault& fault, units::Nanoseconds since,
                                         units::Nanoseconds time);

/// Names the kernel and the time namespace that this process' steady clock belongs to; "" if the
/// system does not tell.
[[nodiscard]] std::string clock_identity();

/// Measures how the clocks of the ranks run against rank 0's during a measurement: construct it
/// before, call fit() after. Ranks of one kernel share a clock, so one rank of each kernel makes
/// the round trips for all of them; the ranks that share rank 0's kernel have offset 0 without any.
/// Rank 0 answers one kernel after the other: 20 round trips of some 10 us each, which is 0.2 ms
/// per node before and again after, 0.4 s for 2048 nodes.
class ClockSync {
 public:
  /// Collective: makes the round trips before the measurement. With a fault, this rank counts as
  /// having a clock of its own, which is misread as the fault says from now on. `communicator` must
  /// outlive this object.
  explicit ClockSync(const Communicator& communicator, std::optional<ClockFault> fault = {});

  /// Collective: makes the round trips after the measurement and returns the fit of this rank's
  /// clock, which holds from the end of the constructor on.
  [[nodiscard]] ClockFit fit() const;

  /// Returns the time that this rank's clock, with its fault, showed at `time`, a value of now().
  [[nodiscard]] units::Nanoseconds shown(units::Nanoseconds time) const;

 private:
  [[nodiscard]] std::vector<RoundTrip> round_trips() const;
  [[nodiscard]] RoundTrip ask() const;
  void answer(int rank) const;

  const Communicator& communicator_;
  std::optional<ClockFault> fault_;
  units::Nanoseconds since_;    ///< the time when the fault began
  std::vector<int> askers_;     ///< one rank of each kernel, without rank 0's kernel
  bool has_own_clock_ = false;  ///< this rank's clock is not rank 0's
  Communicator kernel_;         ///< the ranks that share this clock
  std::vector<RoundTrip> before_;
  units::Nanoseconds reference_;
};

}  // namespace isoscale::comm
