// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "executor/host/prepare.hpp"
#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// Injects faults on the host: lengthens ops, or makes them fail or never end.
namespace isoscale::executor::host {

/// Tells how an op is slowed. compute: the thread keeps its core busy; communication: the thread
/// leaves the core to others; delay: the thread sleeps instead of doing the op's work.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest duration so far of similar communication ops of a lane.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< number of durations that were compared
};

/// Determines by how much one op is slowed. Only the thread of the op's lane uses this object.
///
/// A compute op lasts `factor` times as long, plus a random share of its duration that is drawn in
/// each play from an exponential distribution with mean `jitter`.
///
/// A communication op is lengthened by factor - 1 times the shortest duration of similar ops so
/// far. The time beyond the shortest duration was a wait for a partner, which a slow link does not
/// lengthen; if it did, two ranks would increase each other's delays without end. The first of
/// similar ops is not lengthened, since it is not yet known how much of its time was a wait for
/// partners to start.
///
/// A delay replaces an op's work by a sleep of `time`, which is lengthened by `factor` and `jitter`
/// like the duration of a compute op.
struct Slowing {
  SlowedKind kind = SlowedKind::compute;
  double factor = 1, jitter = 0;
  std::uint64_t origin = 0;            ///< seeds the random numbers; must differ between ops
  std::shared_ptr<LeastTime> least{};  ///< communication only; shared with similar ops
  units::Nanoseconds time{};           ///< length of the sleep; delay only
  std::uint64_t drawn = 0;             ///< number of random numbers drawn so far

  /// Returns the time by which an op that took `took` must be lengthened.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);
};

/// Determines if and how faults slow the ops of one section.
class OpSlower {
 public:
  /// `faults` are the faults of `rank`. Both references must outlive this object.
  OpSlower(const program::Faults& faults, const mesh::Shape& mesh, int rank)
      : faults_(faults), mesh_(mesh), rank_(rank) {}

  /// Returns how op number `index` in `lane` is slowed; absent if no fault slows it.
  [[nodiscard]] std::optional<Slowing> slowing_of(const program::Op& op, std::uint32_t index,
                                                  std::size_t lane);

 private:
  [[nodiscard]] double link_factor(const program::Op& op) const;
  [[nodiscard]] std::shared_ptr<LeastTime> least_of(const program::Op& op, std::size_t lane);

  const program::Faults& faults_;
  const mesh::Shape& mesh_;
  int rank_;
  /// The LeastTime of communication ops by a key; ops with equal keys have comparable durations.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<LeastTime>> alike_;
};

/// Waits until the clock shows `until`: a compute op by busy waiting, a communication op by
/// yielding the core, a delay by sleeping.
void pass_time(SlowedKind kind, units::Nanoseconds until);

/// Returns a call that plays the op by `call` and then waits for the extra time of `slowing`.
[[nodiscard]] Call slowed(Call call, Slowing slowing);

/// Returns a call that replaces a GEMM without multiplying. If the GEMM would add to D in place, D
/// stays as it is; otherwise D is set to 0.
[[nodiscard]] Call without_product(const GemmCall& gemm);

/// Returns a call that in its third play either never returns or throws, as `how` selects. The
/// message names `rank`, which is a rank of MPI_COMM_WORLD.
[[nodiscard]] Call stuck(Call call, program::Stuck how, int rank);

}  // namespace isoscale::executor::host
