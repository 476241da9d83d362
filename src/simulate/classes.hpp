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

/// Ranks that play the same program among like partners, as one: a mesh of one rank of each class.
/// Coordinates of an axis are alike when the programs of ranks that differ in nothing else are the
/// same; exchanging them changes nothing, so like ranks play at the same times and one stands for
/// all. An axis whose coordinates are all alike is gone: its collectives and messages, which a rank
/// then has with itself, take their time. An axis with messages along it keeps all coordinates or
/// none.
struct Classes {
  mesh::AxisSet kept;           ///< axes with unlike coordinates
  program::OutlineSet outline;  ///< on the mesh of the classes; sizes and axes as on the whole
  std::vector<int> rank;        ///< per rank of that mesh, the rank of the whole that stands for it
  std::vector<std::uint32_t> program;        ///< and its number in the ProgramSet
  std::vector<std::uint32_t> class_of_rank;  ///< per rank of the whole, its rank on that mesh
};
[[nodiscard]] Classes classes_of(const program::ProgramSet& set, program::Section section);

/// The times that each class's ops take on a machine. Where the groups of a class's ranks lie
/// differently on the nodes, the slowest of them counts, op by op. Classes of one program whose
/// ranks lie alike share a table.
[[nodiscard]] Costs class_costs(const Classes& classes, const program::ProgramSet& set,
                                program::Section section, const Machine& machine,
                                const Layout& layout);

/// One step in the steady state, ranks of a class all alike: no noise. Its ranks are those of the
/// classes' mesh. Ops that run beside the other kind are stretched by the machine's overlap.
struct ClassStep {
  double seconds = 0;             ///< from one step to the next
  timeline::Timeline timeline{};  ///< of that step; spans only when recorded
  /// The times that the ops took, stretched by overlap: of the costs given, one table for each
  /// class then.
  Costs costs{};
  /// By how much `seconds` still changed, relatively, when the stretch by overlap was last worked
  /// out.
  double error = 0;
};
[[nodiscard]] ClassStep play_classes(const Classes& classes, const Costs& costs,
                                     const Overlap& overlap, Record record);
/// Adds the spans to a step that `classes` played without.
void record_spans(const Classes& classes, ClassStep& step);

}  // namespace isoscale::simulate
