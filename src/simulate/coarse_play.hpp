// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/outline.hpp"
#include "simulate/simulate.hpp"

/// Plays coarse programs: all ops of a lane between two meetings (communication with other ranks,
/// or waits between lanes) are one piece of work. This makes it possible to play thousands of
/// ranks.
namespace isoscale::simulate {

/// The total times, in nanoseconds, of consecutive ops of a lane. An op that waits begins a new
/// one; a meeting, or an op that another lane waits for, ends it.
struct Work {
  double compute = 0;  ///< multiplied by the rank's factor
  double fixed = 0;    ///< copies, and communication of a rank with itself
  double spread = 0;   ///< root of the sum of squares of the compute ops' times
};

/// A piece of work, followed by a collective.
struct ChainLink {
  Work before{};
  double collective = 0;  ///< nanoseconds, after the last arrival
};

enum class CoarseKind : std::uint8_t { work, chain, exchange };

/// A piece of work, an exchange, or a chain of links with collectives over the same group.
struct CoarseOp {
  CoarseKind kind = CoarseKind::work;
  Work work{};
  double cost = 0;                     ///< time of an exchange after the last arrival
  std::uint32_t channel = 0;           ///< number of a chain's channel
  std::uint32_t first = 0, count = 0;  ///< a chain's links, or an exchange's messages
  std::uint32_t wait_first = 0, wait_count = 0;
  std::int32_t slot = -1;  ///< index of its end time; -1 if no lane waits for it
};

struct CoarseWait {
  std::uint32_t lane = 0, count = 0;  ///< waits for the first `count` coarse ops of `lane`
  std::int32_t slot = 0;              ///< slot of the last of them
};

struct CoarseMessage {
  bool sends = false;
  std::uint32_t box = 0;       ///< number of its axis and offset, as the receiver sees them
  int stride = 1, extent = 1;  ///< of the axis
  int offset = 0;              ///< steps along the axis to the partner

  /// Returns the rank at the offset, wrapping around.
  [[nodiscard]] int partner_of(int rank) const {
    const int coordinate = rank / stride % extent;
    const int other = ((coordinate + offset % extent) % extent + extent) % extent;
    return rank + (other - coordinate) * stride;
  }
};

struct CoarseProgram {
  std::vector<std::vector<CoarseOp>> lanes;
  std::vector<ChainLink> links;
  std::vector<CoarseWait> waits;
  std::vector<CoarseMessage> messages;
  std::uint32_t slots = 0;
};

/// A kind of communicator: groups along `axes` on one stream.
struct CoarseChannel {
  mesh::AxisSet axes{};
  program::StreamId stream = 0;
  int members = 1;
  bool operator==(const CoarseChannel&) const = default;
};

struct CoarseSet {
  mesh::Shape mesh;
  std::vector<CoarseProgram> programs;
  std::vector<std::uint32_t> program_of_rank;
  std::vector<CoarseChannel> channels;
  std::uint32_t boxes = 0;  ///< kinds of messages
  std::uint32_t lanes = 1;

  [[nodiscard]] const CoarseProgram& of(int rank) const {
    return programs[program_of_rank[static_cast<std::size_t>(rank)]];
  }
};

/// Converts programs to coarse ones: rank r of `mesh` plays outlines[outline_of_rank[r]], whose ops
/// take the times tables[table_of_rank[r]].
[[nodiscard]] CoarseSet coarsen(const mesh::Shape& mesh,
                                const std::vector<program::Outline>& outlines,
                                const std::vector<std::uint32_t>& outline_of_rank,
                                const std::vector<std::vector<units::Nanoseconds>>& tables,
                                const std::vector<std::uint32_t>& table_of_rank);
[[nodiscard]] inline CoarseSet coarsen(const program::OutlineSet& whole, const Costs& costs) {
  return coarsen(whole.mesh, whole.outlines, whole.outline_of_rank, costs.tables,
                 costs.table_of_rank);
}

struct CoarseOptions {
  int plays = 1;
  std::vector<double> begin{};  ///< of each rank's first play, nanoseconds; empty = all 0
  /// Returns the factor for a rank's compute in one play; empty = 1.
  std::function<double(int rank, int play)> factor{};
  double op_noise = 0;     ///< standard deviation of each compute op's time, relative
  std::uint64_t seed = 1;  ///< of the ops' draws
};

/// One play on one rank, in nanoseconds.
struct CoarseStep {
  double begin = 0, end = 0;
};

/// Plays programs by the rules of simulate(). Without noise, steps begin and end at the same times
/// as in simulate(), to the nanosecond. Returns steps by [play][rank]. Throws base::Error when the
/// programs deadlock.
[[nodiscard]] std::vector<std::vector<CoarseStep>> play_coarse(const CoarseSet& set,
                                                               const CoarseOptions& options);

/// A step in the steady state.
struct CoarseSteady {
  double period = 0;             ///< nanoseconds
  std::vector<CoarseStep> step;  ///< by rank; times from the first rank's start
};
/// Repeats plays without noise until a play takes the same time on every rank, and returns that
/// play; every later play would take this time too. If no such play comes within a number of plays,
/// the period is the mean over the later half of them. `factor` multiplies each rank's compute;
/// empty = 1.
[[nodiscard]] CoarseSteady settle(const CoarseSet& set, const std::vector<double>& factor = {});

}  // namespace isoscale::simulate
