// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/shapes.hpp"

#include <fmt/format.h>

#include "program/matrices.hpp"

namespace isoscale::program {
namespace {

/// The last element + 1 that a strided matrix touches.
std::uint64_t extent(const Matrix& matrix, const Extents& extents) {
  const auto& [rows, columns, batch] = extents;
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * matrix.batch_stride + (rows - 1) * matrix.row_stride + columns;
}

std::optional<std::string> inverse_mistake(const Slice& inverse, std::uint32_t rows) {
  if (inverse.buffer != no_buffer && inverse.count == rows) return std::nullopt;
  return fmt::format("a norm of {} rows has {} inverses", rows,
                     inverse.buffer == no_buffer ? 0 : inverse.count);
}

std::optional<std::string> up_mistake(ActivationKind kind, const Matrix& up) {
  const bool is_gated = kind == ActivationKind::swiglu;
  if (is_gated == exists(up)) return std::nullopt;
  return is_gated ? "swiglu without its second operand" : "gelu with a second operand";
}

/// Operands that are missing, or one too many.
std::optional<std::string> operand_mistake(const Payload& payload) {
  if (const auto* norm = std::get_if<Norm>(&payload)) {
    if (exists(norm->addend) != exists(norm->sum)) {
      return "a norm has an addend and a sum, or neither";
    }
    return inverse_mistake(norm->inverse, norm->rows);
  }
  if (const auto* gradient = std::get_if<NormGradient>(&payload)) {
    return inverse_mistake(gradient->inverse, gradient->rows);
  }
  if (const auto* activation = std::get_if<Activation>(&payload)) {
    return up_mistake(activation->kind, activation->up);
  }
  if (const auto* gradient = std::get_if<ActivationGradient>(&payload)) {
    if (exists(gradient->up) != exists(gradient->dup)) {
      return "an activation's gradient has a second operand and its gradient, or neither";
    }
    return up_mistake(gradient->kind, gradient->up);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> shape_mistake(const Payload& payload) {
  std::optional<std::string> mistake;
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    if (mistake || extent(matrix, extents) <= matrix.slice.count) return;
    mistake = fmt::format(
        "{} x {} x {} matrix with strides {}, {} needs {} elements, "
        "its slice has {}",
        extents.batch, extents.rows, extents.columns, matrix.batch_stride, matrix.row_stride,
        extent(matrix, extents), matrix.slice.count);
  });
  return mistake ? mistake : operand_mistake(payload);
}

}  // namespace isoscale::program
