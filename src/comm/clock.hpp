// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/clock_fit.hpp"
#include "comm/world.hpp"

namespace isoscale::comm {

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

  /// What this rank's clock showed at `time`, a value of now().
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
