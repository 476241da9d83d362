// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/outputs.hpp"

#include <optional>

#include "program/access.hpp"

namespace isoscale::program {
namespace {

bool same(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.count == b.count && a.step == b.step &&
         a.axis == b.axis;
}

/// The op's matrix that a slice belongs to.
std::optional<Output> as_matrix(const Payload& payload, const Slice& slice) {
  if (const auto* rows = std::get_if<Rows>(&payload)) {
    return Output{.matrix = rows->dst, .extents = {rows->rows, rows->columns}};
  }
  std::optional<Output> found;
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    if (same(matrix.slice, slice)) found = {.matrix = matrix, .extents = extents};
  });
  return found;
}

bool has_gaps(const Payload& payload) {
  const auto* fill = std::get_if<Fill>(&payload);
  if (fill == nullptr) return false;
  const auto& extents = fill->shard.extents;
  return extents[0] * extents[1] * extents[2] != fill->dst.count;
}

}  // namespace

std::vector<Output> outputs_of(const Payload& payload) {
  std::vector<Output> outputs;
  if (has_gaps(payload)) return outputs;
  for_each_slice(payload, [&](const Slice& slice, Mode mode) {
    if (mode == Mode::read) return;
    const Output whole{.matrix = {.slice = slice, .row_stride = slice.count},
                       .extents = {.rows = 1, .columns = slice.count}};
    outputs.push_back(as_matrix(payload, slice).value_or(whole));
  });
  return outputs;
}

}  // namespace isoscale::program
