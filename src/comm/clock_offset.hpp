// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "units/quantity.hpp"

/// The clock of each rank runs apart from rank 0's: its offset and drift are fitted to round trips
/// of messages, before and after something is measured.
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

  /// The time that rank 0's clock showed when this rank's showed `own`.
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

/// An error that a clock is given on purpose.
struct ClockFault {
  units::Nanoseconds offset{};  ///< it is fast by so much
  double drift = 0;             ///< and gains so many seconds per second
};

/// The time that a clock with a fault shows at `time`; the fault's offset is that at `since`.
[[nodiscard]] units::Nanoseconds misread(const ClockFault& fault, units::Nanoseconds since,
                                         units::Nanoseconds time);

/// Names the kernel and the time namespace that this process' steady clock belongs to; "" when the
/// system does not tell.
[[nodiscard]] std::string clock_identity();

/// Finds out how the clocks of ranks run against rank 0's while something is measured: made before,
/// asked after. Ranks of one kernel share a clock, so one of each kernel asks for all; the ranks of
/// rank 0's have offset 0 without asking. Rank 0 answers kernel after kernel: 20 round trips of
/// some 10 us each, 0.2 ms a node at each end, 0.4 s for 2048 nodes.
class ClockSync {
 public:
  /// Collective: the round trips before. With a fault, this rank's clock is its own, and is misread
  /// as the fault says from now on. `communicator` outlives this object.
  explicit ClockSync(const Communicator& communicator, std::optional<ClockFault> fault = {});

  /// Collective: the round trips after. Of this rank, from the end of the constructor on.
  [[nodiscard]] ClockFit fit() const;

  /// The time that this rank's clock showed at `time`, a value of now().
  [[nodiscard]] units::Nanoseconds shown(units::Nanoseconds time) const;

 private:
  [[nodiscard]] std::vector<RoundTrip> round_trips() const;
  [[nodiscard]] RoundTrip ask() const;
  void answer(int rank) const;

  const Communicator& communicator_;
  std::optional<ClockFault> fault_;
  units::Nanoseconds since_;    ///< when the fault began
  std::vector<int> askers_;     ///< one rank of each kernel but rank 0's
  bool has_own_clock_ = false;  ///< not rank 0's
  Communicator kernel_;         ///< ranks that share this clock
  std::vector<RoundTrip> before_;
  units::Nanoseconds reference_;
};

}  // namespace isoscale::comm
