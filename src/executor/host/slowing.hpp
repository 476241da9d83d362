// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "units/quantity.hpp"

/// How ops are made to last longer than they have to.
namespace isoscale::executor::host {

/// What an op slows: compute takes its core with it, communication leaves it to others, and a
/// delay, which is all there is of its op, sleeps.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest time that like ops of a lane took so far.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< that it is the least of
};
/// One per group of like communication; the calls of the lane point to them, so they stay where
/// they are.
using LeastTimes = std::vector<std::unique_ptr<LeastTime>>;

/// How one op is slowed; used by the thread of its lane.
class Slowing {
 public:
  /// Compute lasts `factor` times what it took, and a share longer that is drawn anew in each play:
  /// exponentially distributed, `jitter` on average, from `origin`, a number that no other op has.
  [[nodiscard]] static Slowing compute(double factor, double jitter, std::uint64_t origin);
  /// Communication lasts factor - 1 times the shortest time of like ops so far longer: what is more
  /// than that was waiting for a partner, which a slow link does not lengthen. If it did, two ranks
  /// would answer each other's delays with longer ones, without end. The first of like ops is not
  /// lengthened: how much of it was waiting, until its partners had started, is not known yet.
  /// `least` outlives this object.
  [[nodiscard]] static Slowing communication(double factor, LeastTime& least);

  /// Something else, done sooner, lasts `time`; `factor` and `jitter` lengthen that as they do
  /// compute.
  [[nodiscard]] static Slowing delay(units::Nanoseconds time, double factor, double jitter,
                                     std::uint64_t origin);

  [[nodiscard]] SlowedKind kind() const { return kind_; }
  /// How much longer an op lasts that took `took`.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);

 private:
  Slowing(SlowedKind kind, double factor, double jitter, std::uint64_t origin)
      : kind_(kind), factor_(factor), jitter_(jitter), origin_(origin) {}
  [[nodiscard]] double longer_share();

  SlowedKind kind_;
  double factor_, jitter_;
  std::uint64_t origin_;
  std::uint64_t drawn_ = 0;
  LeastTime* least_ = nullptr;  ///< of communication
  units::Nanoseconds time_{};   ///< of a delay
};

/// Returns when `until` has come.
void pass_time(SlowedKind kind, units::Nanoseconds until);

}  // namespace isoscale::executor::host
