// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "executor/host/prepare.hpp"
#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// Faults on the host: ops that are lengthened on purpose, or never end.
namespace isoscale::executor::host {

/// How an op is slowed. compute: its core is kept busy; communication: the core is left to others;
/// delay: the thread sleeps instead of doing the op's work.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// How one op is slowed; only the thread of its lane uses this object.
class Slowing {
 public:
  /// Makes compute take `factor` times as long, plus a random share of its time that is drawn anew
  /// in each play: exponentially distributed, `jitter` on average. `origin` is the start of the
  /// random numbers; no other op may have the same.
  [[nodiscard]] static Slowing compute(double factor, double jitter, std::uint64_t origin) {
    return {SlowedKind::compute, factor, jitter, origin};
  }
  /// Makes communication longer by factor - 1 times the shortest time of similar ops so far. Any
  /// time beyond that was a wait for a partner, which a slow link does not lengthen; if it did, two
  /// ranks would answer each other's delays with longer ones, without end. The first of similar ops
  /// is not lengthened: it is not known yet how much of it was a wait for partners to start.
  /// `least` must outlive this object.
  [[nodiscard]] static Slowing communication(double factor, LeastTime& least) {
    return {SlowedKind::communication, factor, 0, 0, &least};
  }
  /// Replaces work by a delay of `time`, which `factor` and `jitter` lengthen as they lengthen
  /// compute.
  [[nodiscard]] static Slowing delay(units::Nanoseconds time, double factor, double jitter,
                                     std::uint64_t origin) {
    return {SlowedKind::delay, factor, jitter, origin, nullptr, time};
  }

  [[nodiscard]] SlowedKind kind() const { return kind_; }
  /// Returns the time by which an op that took `took` must be lengthened.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);

 private:
  Slowing(SlowedKind kind, double factor, double jitter, std::uint64_t origin,
          LeastTime* least = nullptr, units::Nanoseconds time = {})
      : kind_(kind),
        factor_(factor),
        jitter_(jitter),
        origin_(origin),
        least_(least),
        time_(time) {}

  SlowedKind kind_;
  double factor_, jitter_;
  std::uint64_t origin_;
  std::uint64_t drawn_ = 0;
  LeastTime* least_;         ///< communication only
  units::Nanoseconds time_;  ///< delay only
};

/// Decides if and how faults slow the ops of one section.
class OpSlower {
 public:
  /// `faults` are those of `rank`. All references must outlive this object; `least_times` must also
  /// outlive the calls.
  OpSlower(const program::Faults& faults, const mesh::Shape& mesh, int rank,
           LeastTimes& least_times)
      : faults_(faults), mesh_(mesh), rank_(rank), least_times_(least_times) {}

  /// Returns how op number `index` in `lane` is slowed; absent if no fault slows it.
  [[nodiscard]] std::optional<Slowing> slowing_of(const program::Op& op, std::uint32_t index,
                                                  std::size_t lane);

 private:
  [[nodiscard]] double link_factor(const program::Op& op) const;
  [[nodiscard]] LeastTime& least_of(const program::Op& op, std::size_t lane);

  const program::Faults& faults_;
  const mesh::Shape& mesh_;
  int rank_;
  LeastTimes& least_times_;
  /// For each key, which says what ops with comparable times have in common, an index into
  /// least_times_.
  std::map<std::vector<std::uint64_t>, std::size_t> alike_;
};

/// Waits until the time `until`, by computing, yielding the core or sleeping.
void pass_time(SlowedKind kind, units::Nanoseconds until);

/// Returns a call that plays an op slowed down.
[[nodiscard]] Call slowed(Call call, Slowing slowing);

/// Returns a call that replaces a GEMM without multiplying. If the GEMM would add to D in place, D
/// stays as it is; otherwise D is set to 0.
[[nodiscard]] Call without_product(const GemmCall& gemm);

/// Returns a call that never returns, or throws, in its third play; `rank` of the world is named in
/// the message.
[[nodiscard]] Call stuck(Call call, program::Stuck how, int rank);

}  // namespace isoscale::executor::host
