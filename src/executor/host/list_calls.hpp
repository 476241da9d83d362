// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/host/wide.hpp"

/// Select, Spread and Rows with everything looked up. f64 and f32 are computed as they are; other
/// types are widened to f32 and rounded once.
namespace isoscale::executor::host {

struct SelectCall {
  program::DType type = program::DType::f32;
  std::size_t count = 0, block = 0, keep = 0;
  std::byte *src = nullptr, *values = nullptr;
  std::int32_t* places = nullptr;
};
void run(const SelectCall& call);

struct SpreadCall {
  program::DType type = program::DType::f32;
  std::size_t count = 0, block = 0, keep = 0, parts = 1;
  const std::byte* values = nullptr;
  const std::int32_t* places = nullptr;
  std::byte* dst = nullptr;
};
void run(const SpreadCall& call);

/// Strides in elements.
struct RowsCall {
  program::DType type = program::DType::f32;
  std::size_t columns = 0, each = 1;
  double scale = 1;
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t src_row = 0, dst_row = 0;
  std::vector<std::uint32_t> from{};  ///< `each` per row of dst
};
void run(const RowsCall& call);

}  // namespace isoscale::executor::host
