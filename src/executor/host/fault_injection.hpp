// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "executor/host/calls.hpp"
#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// Faults on the host: ops that are lengthened on purpose, or never end.
namespace isoscale::executor::host {

/// Decides if and how faults slow the ops of one section.
class OpSlower {
 public:
  /// `faults` are those of `rank`. All references must outlive this object; `least_times` must also
  /// outlive the calls.
  OpSlower(const program::Faults& faults, const mesh::Shape& mesh, int rank,
           LeastTimes& least_times)
      : faults_(faults), mesh_(mesh), rank_(rank), least_times_(least_times) {}

  /// Returns a call that plays op number `index` in `lane` slowed down, or `call` itself if no
  /// fault slows it.
  [[nodiscard]] Call slowed(Call call, const program::Op& op, std::uint32_t index,
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

/// Returns true if the op is to be played. In the play in which it is stuck, it throws or never
/// returns.
[[nodiscard]] bool may_play(StuckCall& call);

}  // namespace isoscale::executor::host
