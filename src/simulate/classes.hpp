// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::simulate {

/// Combines ranks that play the same program among like partners, so that a mesh of one rank of
/// each class represents the whole. Coordinates of an axis are alike when the programs of ranks
/// that differ in nothing else are the same; exchanging such coordinates changes nothing, so like
/// ranks play at the same times and one stands for all. An axis whose coordinates are all alike is
/// removed: its collectives and messages, which a rank then has with itself, keep their time. An
/// axis with messages along it keeps all coordinates or none.
struct Classes {
  mesh::AxisSet kept;           ///< axes with unlike coordinates
  program::OutlineSet outline;  ///< on the mesh of the classes; sizes and axes as on the whole
  std::vector<int> rank;        ///< per rank of that mesh, the rank of the whole that represents it
  std::vector<std::uint32_t> program;  ///< per rank of that mesh, the number in the ProgramSet
  std::vector<std::uint32_t> class_of_rank;  ///< per rank of the whole, its rank on that mesh
};
[[nodiscard]] Classes classes_of(const program::ProgramSet& set, program::Section section);

/// Returns the times that each class's ops take on a machine. If the groups of a class's ranks lie
/// differently on the nodes, the slowest of them counts, op by op. Classes of one program whose
/// ranks lie alike share a table.
[[nodiscard]] Costs class_costs(const Classes& classes, const program::ProgramSet& set,
                                program::Section section, const Machine& machine,
                                const Layout& layout);

/// One step in the steady state without noise, where all ranks of a class are alike. Its ranks are
/// those of the classes' mesh. Ops that run beside the other kind are stretched by the machine's
/// overlap.
struct ClassStep {
  double seconds = 0;             ///< from one step to the next
  timeline::Timeline timeline{};  ///< of that step; spans only when recorded
  /// The times that the ops took: the given costs, stretched by overlap. If stretched, there is one
  /// table for each class.
  Costs costs{};
  /// The relative change of `seconds` in the last round of stretching by overlap.
  double error = 0;
};
[[nodiscard]] ClassStep play_classes(const Classes& classes, const Costs& costs,
                                     const Overlap& overlap, Record record);
/// Adds the spans to a step that `classes` played without recording them.
void record_spans(const Classes& classes, ClassStep& step);

}  // namespace isoscale::simulate
