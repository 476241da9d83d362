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

/// A mesh in which one rank represents all ranks of the whole mesh that are alike.
struct ReducedMesh {
  mesh::Shape mesh;
  std::vector<int> rank;             ///< per rank of this mesh, one rank that it represents
  std::vector<std::uint32_t> place;  ///< per rank of the whole mesh, its representative
};
/// Merges alike coordinates of each axis into one. Two coordinates are alike if ranks that differ
/// only in this coordinate have the same `kind`. The coordinates of an axis are merged only if
/// `may_merge`, called with the axis and the number of coordinates that would be left, returns
/// true.
[[nodiscard]] ReducedMesh reduced(const mesh::Shape& shape, std::vector<std::uint64_t> kind,
                                  const std::function<bool(mesh::Axis, int kept)>& may_merge);
/// Returns the axes along which messages are sent.
[[nodiscard]] mesh::AxisSet axes_of_messages(const program::OutlineSet& set);

/// The classes of ranks that play the same program with partners of the same classes: a mesh with
/// one rank of each class represents the whole mesh. Coordinates of an axis are alike when ranks
/// that differ in nothing else have the same program; exchanging such coordinates changes nothing,
/// so one of these ranks represents the others, which play at the same times. An axis whose
/// coordinates are all alike is removed: a rank then has its collectives and messages along this
/// axis with itself, but they keep the time that they take on the whole mesh. An axis with messages
/// along it keeps all its coordinates or is removed.
struct Classes {
  /// The programs of a step on the mesh of the classes. Ops keep the sizes and axes that they have
  /// on the whole mesh, and programs keep their indices in the ProgramSet.
  program::OutlineSet outline;
  std::vector<int> rank;  ///< per class, the rank of the whole mesh that represents it
  std::vector<std::uint32_t> class_of_rank;  ///< per rank of the whole mesh, its class
};
[[nodiscard]] Classes classes_of(const program::ProgramSet& set);

/// Returns the times that the ops of each class take on a machine. If the groups of a class's ranks
/// lie differently on the nodes, each op takes the longest of its times on these ranks. Classes
/// with the same program and the same places on the nodes share a table.
[[nodiscard]] Costs class_costs(const Classes& classes, const program::ProgramSet& set,
                                const Machine& machine, const Layout& layout);

enum class Record : std::uint8_t { steps, spans };  ///< begins and ends of steps, or every span too

/// A step in the steady state without noise, with one rank for each class.
struct ClassStep {
  double seconds = 0;             ///< time from one step to the next
  timeline::Timeline timeline{};  ///< times of this step; has spans only if they were recorded
  /// The times that the ops took: the given costs, lengthened by overlap. If they were lengthened,
  /// there is one table for each class.
  Costs costs{};
};
/// Plays steps of the classes until they are steady and returns one. If a factor of `overlap` is
/// not 1, ops take longer while compute and communication overlap; their times are corrected in
/// rounds until the step's time hardly changes.
[[nodiscard]] ClassStep play_classes(const Classes& classes, const Costs& costs,
                                     const Overlap& overlap, Record record);

}  // namespace isoscale::simulate
