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

/// A straight list of ops on streams; order of the list = order of issue. It never branches.
struct Program {
  std::vector<Op> ops;
  std::vector<Wait> waits;

  [[nodiscard]] std::span<const Wait> waits_of(const Op& op) const {
    return std::span{waits}.subspan(op.wait_begin, op.wait_count);
  }
};

enum class Section : std::uint8_t { setup, step };

/// Elements that every mesh of one model must agree on: an output, a gradient, an updated weight.
struct Observable {
  std::string name;  ///< of the global tensor, "layer3.qkv.gradient"
  Slice slice;
  Shard shard;
};

/// What one rank plays: `setup` once, then `step` again and again, over one buffer table.
struct RankProgram {
  std::vector<Buffer> buffers;
  std::array<std::uint64_t, space_count> arena_bytes{};  ///< per space
  std::vector<std::string> streams;                      ///< names; stream 0 is "compute"
  Program setup, step;
  std::vector<Observable> observables;

  [[nodiscard]] const Program& section(Section which) const {
    return which == Section::setup ? setup : step;
  }
};

/// The programs of all ranks of a point. Ranks that are alike share one.
struct ProgramSet {
  mesh::Shape mesh;
  std::vector<RankProgram> programs;
  std::vector<std::uint32_t> program_of_rank;  ///< one per rank of the mesh

  [[nodiscard]] const RankProgram& of(int rank) const {
    return programs[program_of_rank[static_cast<std::size_t>(rank)]];
  }
};

}  // namespace isoscale::program
