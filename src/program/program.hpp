// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "program/op.hpp"

namespace isoscale::program {

/// A straight list of ops on streams, in the order of issue. It never branches.
struct Program {
  std::vector<Op> ops;
  std::vector<Wait> waits;

  [[nodiscard]] std::span<const Wait> waits_of(const Op& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
};

/// Selects one of a rank's programs: 0 is setup, 1 + i is steps[i].
enum class Section : std::uint32_t { setup, step };
[[nodiscard]] constexpr Section step_section(std::size_t i) {
  return static_cast<Section>(1 + static_cast<std::uint32_t>(i));
}

/// Elements on which all meshes of one model must agree: an output, a gradient, an updated weight.
struct Observable {
  std::string name;  ///< of the global tensor, "layer3.qkv.gradient"
  Slice slice;
  Shard shard;
};

/// The programs that one rank plays over one buffer table: `setup` once, then its steps, each
/// repeatedly and in any order. A training workload has one step, a micro-benchmark one for each
/// configuration that it times.
struct RankProgram {
  std::vector<Buffer> buffers;
  std::array<std::uint64_t, space_count> arena_bytes{};  ///< per space

  /// Returns the bytes that lie in the host's memory on every device: pinned and pageable buffers.
  [[nodiscard]] std::uint64_t host_bytes() const {
    return arena_bytes[static_cast<std::size_t>(Space::pinned)] +
           arena_bytes[static_cast<std::size_t>(Space::pageable)];
  }
  std::vector<std::string> streams;  ///< names; stream 0 is "compute"
  Program setup;
  std::vector<Program> steps = std::vector<Program>(1);  ///< at least one
  std::vector<Observable> observables;

  [[nodiscard]] Program& step() { return steps.front(); }
  [[nodiscard]] const Program& step() const { return steps.front(); }
  [[nodiscard]] std::size_t section_count() const { return 1 + steps.size(); }
  [[nodiscard]] const Program& section(Section which) const {
    return which == Section::setup ? setup : steps.at(static_cast<std::size_t>(which) - 1);
  }
  /// Returns setup and the steps, in order.
  [[nodiscard]] std::vector<const Program*> sections() const {
    std::vector<const Program*> all{&setup};
    for (const Program& step : steps) all.push_back(&step);
    return all;
  }
};

/// The programs of all ranks of a point. Ranks with equal programs share one.
struct ProgramSet {
  mesh::Shape mesh;
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of_rank;  ///< one per rank of the mesh

  [[nodiscard]] const RankProgram& of(int rank) const {
    return programs[program_of_rank[static_cast<std::size_t>(rank)]];
  }
};

}  // namespace isoscale::program
