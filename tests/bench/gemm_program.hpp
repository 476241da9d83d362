// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/builder.hpp"

namespace isoscale::bench {

/// A multiplication: its type, whether A and B are stored transposed, and its extents.
struct GemmShape {
  program::DType type = program::DType::f32;
  program::Transpose a = program::Transpose::no, b = program::Transpose::no;
  std::uint32_t m = 0, n = 0, k = 0;
};

/// A program of one rank: setup fills the operands with numbers between -1 and 1, a step multiplies
/// them `count` times, one after another.
[[nodiscard]] inline program::ProgramSet gemm_program(const GemmShape& shape, int count) {
  program::Builder builder{{}};
  const auto matrix = [&](bool flips, std::uint64_t rows, std::uint64_t columns) {
    const std::uint64_t elements = rows * columns;
    const program::BufferId id =
        builder.allocate({.dtype = shape.type, .role = program::Role::weight, .count = elements});
    constexpr int within_one = -7;
    builder.emit(
        0, program::Fill{
               .dst = builder.whole(id),
               .shard = {.extents = {1, 1, elements}, .local = {0, 0, 1}, .global = {0, 0, 1}},
               .key = id,
               .exponent = within_one});
    return program::Matrix{.slice = builder.whole(id), .row_stride = flips ? rows : columns};
  };
  const program::Gemm gemm{.m = shape.m,
                           .n = shape.n,
                           .k = shape.k,
                           .transpose_a = shape.a,
                           .transpose_b = shape.b,
                           .a = matrix(shape.a == program::Transpose::yes, shape.m, shape.k),
                           .b = matrix(shape.b == program::Transpose::yes, shape.k, shape.n),
                           .d = matrix(false, shape.m, shape.n)};
  builder.begin(program::Section::step);
  for (int i = 0; i < count; ++i) builder.emit(0, gemm);
  program::ProgramSet set{.mesh = {}, .programs = {}, .program_of_rank = {0}};
  set.programs.push_back(builder.finish());
  return set;
}

}  // namespace isoscale::bench
