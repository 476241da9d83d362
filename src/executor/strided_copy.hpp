// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "executor/resolve.hpp"
#include "program/op.hpp"

namespace isoscale::executor {

/// batch x rows pieces of row_bytes each; strides in bytes.
struct StridedCopy {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t row_bytes = 0, rows = 0, batch = 0;
  std::size_t src_row = 0, src_batch = 0, dst_row = 0, dst_batch = 0;
};
/// The same copy in as few and as long pieces as its strides allow.
[[nodiscard]] StridedCopy merged(StridedCopy copy);
/// Throws base::Error when the two sides differ in type or lie outside of their slices.
[[nodiscard]] StridedCopy strided_copy(const Resolver& resolver, const program::Copy& op);

}  // namespace isoscale::executor
