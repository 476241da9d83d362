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

/// Injects faults on the host: makes ops take longer, fail, or never end.
namespace isoscale::executor::host {

/// Tells how the extra time of an op is spent. compute: the thread keeps its core busy.
/// communication: the thread leaves the core to others. delay: the thread sleeps, and the op's own
/// work is not done.
enum class SlowedKind : std::uint8_t { compute, communication, delay };

/// The shortest duration that communication ops of one lane (stream) with the same partners and the
/// same amount of data have had so far.
struct LeastTime {
  units::Nanoseconds time{std::numeric_limits<std::int64_t>::max()};
  std::uint64_t plays = 0;  ///< number of durations that were compared
};

/// Determines by how much faults lengthen one op. Only the thread that executes the op uses
/// this object.
///
/// A compute op lasts `factor` times as long, plus a random share of its duration that is drawn in
/// each execution from an exponential distribution with mean `jitter`.
///
/// A communication op is lengthened by (factor - 1) times the shortest duration of similar ops so
/// far. Time beyond the shortest duration was spent waiting for a partner. A slow link does not
/// lengthen this wait. If the wait were lengthened, too, two ranks would increase each other's
/// delays without end. The first of the similar ops is not lengthened, since it is not yet known
/// how much of its time was a wait.
///
/// A delay replaces the op's work by a sleep of length `time`. `factor` and `jitter` lengthen the
/// sleep as they would lengthen a compute op.
struct Slowing {
  SlowedKind kind = SlowedKind::compute;
  double factor = 1, jitter = 0;
  std::uint64_t origin = 0;            ///< seeds the random numbers; must differ between ops
  std::shared_ptr<LeastTime> least{};  ///< for communication: shared with similar ops
  units::Nanoseconds time{};           ///< for a delay: length of the sleep
  std::uint64_t drawn = 0;             ///< number of random numbers drawn so far

  /// Returns the time to add to an op that took the time `took`.
  [[nodiscard]] units::Nanoseconds extra(units::Nanoseconds took);
};

/// Determines which ops of one section are slowed by faults, and how.
class OpSlower {
 public:
  /// `faults` are the faults of `rank`. `faults` and `mesh` must outlive this object.
  OpSlower(const program::Faults& faults, const mesh::Shape& mesh, int rank)
      : faults_(faults), mesh_(mesh), rank_(rank) {}

  /// Returns how `op` is slowed; absent if no fault slows it. `index` is its number in the section,
  /// `lane` the lane (stream) that executes it.
  [[nodiscard]] std::optional<Slowing> slowing_of(const program::Op& op, std::uint32_t index,
                                                  std::size_t lane);

 private:
  [[nodiscard]] double link_factor(const program::Op& op) const;
  [[nodiscard]] std::shared_ptr<LeastTime> least_of(const program::Op& op, std::size_t lane);

  const program::Faults& faults_;
  const mesh::Shape& mesh_;
  int rank_;
  /// The LeastTime objects. The key is made of an op's lane, kind, partners and amount of data; ops
  /// with the same key have comparable durations.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<LeastTime>> alike_;
};

/// Waits until the clock shows `until`. A compute op waits busily, a communication op yields the
/// core while it waits, and a delay sleeps.
void pass_time(SlowedKind kind, units::Nanoseconds until);

/// Returns a call that executes the op by `call` and then waits for the extra time of `slowing`.
[[nodiscard]] Call slowed(Call call, Slowing slowing);

/// Returns a call that replaces a GEMM but does not multiply. If the GEMM would add its product to
/// the values that D already holds, the call does nothing; otherwise it sets D to 0, so that later
/// ops do not read old content of D, which may be NaN.
[[nodiscard]] Call without_product(const GemmCall& gemm);

/// Returns a call that plays the op normally when it is made for the first and the second time. The
/// third time it either never returns or throws base::Error, as `how` says. The message of the
/// exception names `rank`, a rank of MPI_COMM_WORLD.
[[nodiscard]] Call stuck(Call call, program::Stuck how, int rank);

}  // namespace isoscale::executor::host
