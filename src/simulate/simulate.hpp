// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {
struct ProgramSet;
}

/// Computes when each op of each rank's program would run, from given op times and without
/// hardware. The result depends only on the arguments.
namespace isoscale::simulate {

struct Layout;   // layout.hpp
struct Machine;  // machine.hpp
struct Overlap;

/// The time of each op on each rank r: tables[table_of_rank[r]][op]. The time of communication
/// counts from the arrival of the last partner.
struct Costs {
  std::vector<std::vector<units::Nanoseconds>> tables;
  std::vector<std::uint32_t> table_of_rank;
};

struct Options {
  /// Number of steps. A rank begins a step when all of its streams have ended the step before.
  int plays = 1;
  /// The time at which each rank begins its first step; empty = all at 0.
  std::vector<units::Nanoseconds> begin{};
};

/// Returns one timeline, with the spans of all ranks, for each step. Throws base::Error, which
/// names the ranks and ops, if the programs deadlock or do not match, and std::invalid_argument if
/// `options.begin` is not empty but does not have one time for each rank.
[[nodiscard]] std::vector<timeline::Timeline> simulate(const program::OutlineSet& set,
                                                       const Costs& costs, Options options = {});

/// Returns the same programs with every op on stream 0, in program order. A rank that runs all its
/// streams on one thread executes them in this way: no ops overlap, and no op waits for another
/// stream. Ops keep their indices.
[[nodiscard]] program::OutlineSet folded(program::OutlineSet set);

// Thousands of ranks can be simulated with coarse programs, in which all ops of a stream between
// two meetings become one op. Meetings are communication with other ranks, waits for another
// stream, and the ends of ops that another stream waits for.

/// The times of one op of a coarse program, in nanoseconds. A coarse op stands for several ops of
/// the original program, and ends with at most one communication with other ranks.
struct CoarseTime {
  double compute = 0;        ///< compute time; multiplied by the rank's factor
  double fixed = 0;          ///< copies, memory advice, and communication of a rank with itself
  double spread = 0;         ///< root of the sum of squares of the compute ops' times
  std::int64_t meeting = 0;  ///< communication with other ranks, from the last arrival on
};

struct CoarseSet {
  program::OutlineSet programs;                ///< the coarse programs
  std::vector<std::vector<CoarseTime>> times;  ///< [table][op]
  std::vector<std::uint32_t> table_of_rank;
};

/// Makes coarse programs from the programs of a mesh, and computes the times of coarse ops from
/// those of the original ops. Communication has the same begin and end as in the original programs.
class Coarsener {
 public:
  Coarsener(const mesh::Shape& mesh, const std::vector<program::Outline>& outlines);

  /// Rank r of `mesh` runs program outline_of_rank[r]. `costs` has the op times of the original
  /// programs; ranks that share one of its tables must share a program. Axes of `mesh` may be
  /// shorter than in the mesh that the constructor got.
  [[nodiscard]] CoarseSet set(const mesh::Shape& mesh, std::vector<std::uint32_t> outline_of_rank,
                              const Costs& costs) const;

 private:
  enum class Part : std::uint8_t { compute, fixed, meeting };  // a member of CoarseTime
  struct Place {
    std::uint32_t op = 0;  // index of an op in the coarse program
    Part part{};
  };
  void add(const mesh::Shape& mesh, const program::Outline& whole);

  std::vector<program::Outline> outlines_;
  std::vector<std::vector<Place>> places_;  // [outline][op]
};
[[nodiscard]] inline CoarseSet coarsen(const program::OutlineSet& whole, const Costs& costs) {
  return Coarsener{whole.mesh, whole.outlines}.set(whole.mesh, whole.outline_of_rank, costs);
}

struct CoarseOptions {
  int plays = 1;  ///< number of steps
  /// Returns the factor on a rank's compute times in one step. Without a function, the factor is 1.
  std::function<double(int rank, int play)> factor{};
  double op_noise = 0;     ///< relative standard deviation of the time of a compute op
  std::uint64_t seed = 1;  ///< seed of the random noise of ops
};

/// Simulates coarse programs by the rules of simulate(). Without noise, steps begin and end at the
/// same times as in simulate(). Returns the begin and end of steps, by [step][rank]. Throws
/// base::Error if the programs deadlock.
[[nodiscard]] std::vector<std::vector<timeline::Interval>> play_coarse(
    const CoarseSet& set, const CoarseOptions& options);

/// A step in the steady state: later steps take the same time.
struct CoarseSteady {
  double period = 0;                     ///< nanoseconds from one step to the next
  std::vector<timeline::Interval> step;  ///< [rank]; time 0 is the begin of the earliest rank
};
/// Simulates steps without noise until a step takes the same time on every rank, and returns that
/// step; every later step would take this time too. If this does not happen within a fixed number
/// of steps, it returns the last one, and the period is the mean over the later half of them. This
/// is done once for each item of `factors`. An item has the factor on each rank's compute times; in
/// an empty item all factors are 1. `from` may be a steady step of a similar program set: the ranks
/// then begin at the times at which they end in it, so that fewer steps are needed. By default all
/// begin at once.
[[nodiscard]] std::vector<CoarseSteady> settle_each(const CoarseSet& set,
                                                    const std::vector<std::vector<double>>& factors,
                                                    const CoarseSteady& from = {});
[[nodiscard]] inline CoarseSteady settle(const CoarseSet& set,
                                         const std::vector<double>& factor = {}) {
  return settle_each(set, {factor}).front();
}

// The declarations below (rank_classes.cpp) simulate one rank in place of all ranks of a class.

/// A mesh in which one rank represents all equivalent ranks of the original mesh.
struct ReducedMesh {
  mesh::Shape mesh;
  /// For each rank of this mesh, one of the ranks of the original mesh that it represents.
  std::vector<int> rank;
  /// For each rank of the original mesh, the rank of this mesh that represents it.
  std::vector<std::uint32_t> place;
};
/// Merges equivalent coordinates of each axis into one. Two coordinates are equivalent if any two
/// ranks that differ only in them have the same `kind`, which has a number for each rank. The
/// coordinates of an axis are merged only if `may_merge` returns true; its arguments are the axis
/// and the number of coordinates that would remain.
[[nodiscard]] ReducedMesh reduced(const mesh::Shape& shape, const std::vector<std::uint64_t>& kind,
                                  const std::function<bool(mesh::Axis, int kept)>& may_merge);
/// Returns the axes along which messages are sent.
[[nodiscard]] mesh::AxisSet axes_of_messages(const program::OutlineSet& set);

/// Classes of equivalent ranks: ranks that run the same program with partners of the same classes.
/// A mesh with one rank of each class represents the whole mesh, since all ranks of a class run
/// their ops at the same times. Coordinates of an axis are equivalent if ranks that differ only in
/// them have the same program. If all coordinates of an axis are equivalent, the axis is removed: a
/// rank then has its collectives and messages along this axis with itself, but they keep the time
/// that they take on the whole mesh. An axis along which messages are sent is either removed or
/// keeps all of its coordinates.
struct Classes {
  /// The programs of a step on the mesh of the classes. Ops keep the sizes and axes that they have
  /// on the whole mesh, and programs keep their indices in the ProgramSet.
  program::OutlineSet outline;
  std::vector<int> rank;  ///< for each class, the rank of the whole mesh that represents it
  std::vector<std::uint32_t> class_of_rank;  ///< for each rank of the whole mesh, its class
};
[[nodiscard]] Classes classes_of(const program::ProgramSet& set);

/// Returns the times that the ops of each class take on a machine. If the groups of a class's ranks
/// are placed differently on the nodes, each op takes the longest of its times on these ranks.
/// Classes with the same program and the same placement share a table.
[[nodiscard]] Costs class_costs(const Classes& classes, const program::ProgramSet& set,
                                const Machine& machine, const Layout& layout);

/// Selects what play_classes() returns. `steps`: the time of a step; `spans`: also its timeline.
enum class Record : std::uint8_t { steps, spans };

/// A step in the steady state (it takes the same time as the step before) without noise, with one
/// rank for each class.
struct ClassStep {
  double seconds = 0;             ///< time from one step to the next
  timeline::Timeline timeline{};  ///< times of this step; empty without Record::spans
  /// The times that the ops took: the given costs, made longer by overlap. If a factor of Overlap
  /// is not 1, there is one table for each class.
  Costs costs{};
};
/// Simulates steps of the classes until the step time no longer changes, and returns the last step.
/// If it still changes after a fixed number of steps, `seconds` is the mean time of the later half
/// of these steps. If a factor of `overlap` is not 1, ops take longer while compute and
/// communication overlap; their times are then corrected in rounds until the step time hardly
/// changes, in at most 12 rounds.
[[nodiscard]] ClassStep play_classes(const Classes& classes, const Costs& costs,
                                     const Overlap& overlap, Record record);

}  // namespace isoscale::simulate
