// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/builder.hpp"
#include "program/outline.hpp"
#include "simulate/simulate.hpp"

/// Ops of one row, for programs that are written by hand.
namespace isoscale::program {

inline Fill fill(const Slice& dst) {
  return {.dst = dst, .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}}};
}

inline BufferId floats(Builder& builder, std::uint64_t count, Role role = Role::workspace) {
  return builder.allocate({.dtype = DType::f32, .role = role, .count = count});
}

}  // namespace isoscale::program

/// Outlines written by hand, of ops with given times.
namespace isoscale::simulate {

struct MadeOp {
  program::OpKind kind = program::OpKind::gemm;
  program::StreamId stream = 0;
  std::int64_t nanoseconds = 0;
  mesh::AxisSet axes{};
  std::vector<program::Wait> waits{};
};

struct Made {
  program::Outline outline{
      .streams = {"compute", "second"}, .ops = {}, .waits = {}, .transfers = {}};
  std::vector<units::Nanoseconds> costs;
};

inline Made made(const std::vector<MadeOp>& ops) {
  Made result;
  for (const MadeOp& op : ops) {
    result.outline.ops.push_back(
        {.kind = op.kind,
         .stream = op.stream,
         .place = {},
         .axes = op.axes,
         .wait_begin = static_cast<std::uint32_t>(result.outline.waits.size()),
         .wait_count = static_cast<std::uint32_t>(op.waits.size())});
    result.outline.waits.insert(result.outline.waits.end(), op.waits.begin(), op.waits.end());
    result.costs.emplace_back(op.nanoseconds);
  }
  return result;
}

/// Ranks of a mesh that all play one program: the set, of programs without ops (the outline has
/// them), and their one class.
struct AllAlike {
  program::ProgramSet set;
  Classes classes;
  Costs costs;
};

inline AllAlike all_alike(const mesh::Shape& mesh, const std::vector<MadeOp>& ops) {
  const auto ranks = static_cast<std::size_t>(mesh.size());
  Made one = made(ops);
  return {.set = {.mesh = mesh,
                  .programs = std::vector<program::RankProgram>(1),
                  .program_of_rank = std::vector<std::uint32_t>(ranks)},
          .classes = {.outline = {.mesh = {}, .outlines = {one.outline}, .outline_of_rank = {0}},
                      .rank = {0},
                      .class_of_rank = std::vector<std::uint32_t>(ranks)},
          .costs = {.tables = {one.costs}, .table_of_rank = {0}}};
}

}  // namespace isoscale::simulate
