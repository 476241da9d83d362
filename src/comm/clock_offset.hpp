// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "units/quantity.hpp"

/// Estimates the offset and drift of each rank's clock relative to rank 0's clock from round trips
/// of messages before and after a measurement.
namespace isoscale::comm {

/// One round trip of a message to rank 0 and back, with the times that both clocks showed.
struct RoundTrip {
  units::Nanoseconds sent{}, received{};  ///< this rank's clock
  units::Nanoseconds remote{};            ///< rank 0's clock, read at some time in between
};

/// The difference between this rank's clock and rank 0's clock, as a linear function of this rank's
/// time.
struct ClockFit {
  units::Nanoseconds reference{};  ///< a time on this rank's clock
  units::Nanoseconds offset{};     ///< this rank's clock minus rank 0's clock, at `reference`
  double drift = 0;                ///< seconds of offset per second of this rank's clock
  units::Nanoseconds error{};      ///< bound on the error of this function during the measurement

  /// Returns the time that rank 0's clock showed when this rank's clock showed `own`.
  [[nodiscard]] units::Nanoseconds to_rank_0(units::Nanoseconds own) const;
};

/// Fits the linear function to round trips made before and after a measurement; neither set may be
/// empty. Each trip proves that the offset lies in [sent - remote, received - remote], however its
/// time was split between the two directions. Trips longer than twice the shortest of their set are
/// dropped: they waited somewhere, so their bounds are wide, and they may be so far from the others
/// in time that drift matters. The kept trips of a set together confine the offset to one interval;
/// half its width is usually at most half of the shortest trip. ClockFit::error is the larger half
/// width of the two sets, plus 2 ns for rounding, plus an allowance for a change of the drift
/// between the sets.
[[nodiscard]] ClockFit fit_clock(std::span<const RoundTrip> before,
                                 std::span<const RoundTrip> after, units::Nanoseconds reference);

/// An artificial error of a rank's clock, which is injected to test the fit.
struct ClockFault {
  units::Nanoseconds offset{};  ///< the clock is ahead by this much
  double drift = 0;             ///< the clock gains this many seconds per second
};

/// Returns the time that a clock with this fault shows when the correct time is `time`. The fault's
/// offset is exact at `since`; its drift counts from then on.
[[nodiscard]] units::Nanoseconds misread(const ClockFault& fault, units::Nanoseconds since,
                                         units::Nanoseconds time);

/// Returns a text that identifies the steady clock of this process. It is the same for all
/// processes under one operating-system kernel and in one time namespace. Returns "" if the system
/// does not provide it.
[[nodiscard]] std::string clock_identity();

/// Compares the ranks' clocks with rank 0's clock over a measurement: construct it before the
/// measurement and call fit() after it. Ranks under one operating-system kernel (usually one node)
/// share a clock, so one rank per kernel makes the round trips for all of them. Ranks under rank
/// 0's kernel have offset 0 and need no round trips. Rank 0 answers the other kernels one after the
/// other, with 20 round trips of about 10 us for each. This takes 0.2 ms per node, or 0.4 s for
/// 2048 nodes, before the measurement and again after it.
class ClockSync {
 public:
  /// Collective: makes the round trips before the measurement. If `fault` is given, this rank is
  /// treated as if it had a clock of its own, to which the fault applies from now on.
  /// `communicator` must outlive this object.
  explicit ClockSync(const Communicator& communicator, std::optional<ClockFault> fault = {});

  /// Collective: makes the round trips after the measurement and returns the fit of this rank's
  /// clock, which is valid from the time when the constructor returned.
  [[nodiscard]] ClockFit fit() const;

  /// Returns the time that this rank's clock, fault included, showed when now() returned `time`.
  [[nodiscard]] units::Nanoseconds shown(units::Nanoseconds time) const;

 private:
  [[nodiscard]] std::vector<RoundTrip> round_trips() const;
  [[nodiscard]] RoundTrip ask() const;
  void answer(int rank) const;

  const Communicator& communicator_;
  std::optional<ClockFault> fault_;
  units::Nanoseconds since_;    ///< the time when the fault began
  std::vector<int> askers_;     ///< for each clock but rank 0's, the rank that makes the round
                                ///< trips
  bool has_own_clock_ = false;  ///< this rank's clock is not rank 0's
  Communicator kernel_;         ///< the ranks that have the same clock as this rank
  std::vector<RoundTrip> before_;
  units::Nanoseconds reference_;
};

}  // namespace isoscale::comm
