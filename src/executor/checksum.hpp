// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "executor/resolve.hpp"
#include "program/op.hpp"

namespace isoscale::executor {

/// What both executors ask of a checksum: throws base::Error unless it goes to two i64 elements,
/// and what is to be flipped stands in two.
inline void require_sum(const Resolver& resolver, const program::Checksum& op) {
  const auto is_pair = [&](const program::Slice& slice) {
    return slice.count == 2 && resolver.dtype(slice) == program::DType::i64;
  };
  if (!is_pair(op.sum)) throw base::Error("a checksum goes to two i64 elements");
  if (op.flip.buffer == program::no_buffer || is_pair(op.flip)) return;
  throw base::Error("what a checksum flips stands in two i64 elements");
}

}  // namespace isoscale::executor
