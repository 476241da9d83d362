// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/builder.hpp"

/// Ops of one row, for programs that are written by hand.
namespace isoscale::program {

inline Matrix row(const Slice& slice) { return {.slice = slice, .row_stride = slice.count}; }

inline Copy copy(const Slice& src, const Slice& dst) {
  return {.rows = 1,
          .columns = static_cast<std::uint32_t>(src.count),
          .src = row(src),
          .dst = row(dst)};
}

inline Fill fill(const Slice& dst) {
  return {.dst = dst, .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}}};
}

inline BufferId floats(Builder& builder, std::uint64_t count, Role role = Role::workspace) {
  return builder.allocate({.dtype = DType::f32, .role = role, .count = count});
}

}  // namespace isoscale::program
