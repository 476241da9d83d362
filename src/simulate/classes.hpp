// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::simulate {

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
[[nodiscard]] ReducedMesh reduced(const mesh::Shape& shape, std::vector<std::uint64_t> kind,
                                  const std::function<bool(mesh::Axis, int kept)>& may_merge);
/// Returns the axes along which messages are sent.
[[nodiscard]] mesh::AxisSet axes_of_messages(const program::OutlineSet& set);

/// Classes of equivalent ranks: ranks that play the same program with partners of the same classes.
/// A mesh with one rank of each class represents the whole mesh, since all ranks of a class play
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
/// Simulates steps of the classes until they take the same time, and returns one. If they still
/// differ after a fixed number of steps, it returns the last of these, and `seconds` is the mean
/// time of the later half of them. If a factor of `overlap` is not 1, ops take longer while compute
/// and communication overlap; their times are then corrected in rounds until the step time hardly
/// changes, in at most 12 rounds.
[[nodiscard]] ClassStep play_classes(const Classes& classes, const Costs& costs,
                                     const Overlap& overlap, Record record);

}  // namespace isoscale::simulate
