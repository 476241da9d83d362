// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "program/buffer.hpp"

/// Converts elements of any floating type to a type that a CPU computes in, and back; emulation.cpp
/// also has the ops that compute this way.
namespace isoscale::executor::host {

/// Converts a row to Wide: double, or float, to which f64 elements are rounded.
template <class Wide>
void widen_row(program::DType type, const std::byte* from, Wide* to, std::size_t count);
/// Rounds a row to `type` once, to nearest even; fp8 saturates.
template <class Wide>
void narrow_row(const Wide* from, program::DType type, std::byte* to, std::size_t count);

extern template void widen_row(program::DType, const std::byte*, float*, std::size_t);
extern template void widen_row(program::DType, const std::byte*, double*, std::size_t);
extern template void narrow_row(const float*, program::DType, std::byte*, std::size_t);
extern template void narrow_row(const double*, program::DType, std::byte*, std::size_t);

/// A stored matrix, or `batch` of them; strides in elements. Data is null if there is none.
struct StoredMatrix {
  program::DType type = program::DType::f32;
  std::byte* data = nullptr;
  std::size_t rows = 0, columns = 0, batch = 1;
  std::size_t row_stride = 0, batch_stride = 0;
};

/// Returns all elements converted to Wide, with rows and matrices stored without gaps.
template <class Wide>
[[nodiscard]] std::vector<Wide> widen(const StoredMatrix& matrix) {
  std::vector<Wide> result(matrix.batch * matrix.rows * matrix.columns);
  Wide* to = result.data();
  const std::size_t size = program::element_size(matrix.type);
  for (std::size_t b = 0; b < matrix.batch; ++b) {
    for (std::size_t row = 0; row < matrix.rows; ++row, to += matrix.columns) {
      const std::size_t at = b * matrix.batch_stride + row * matrix.row_stride;
      widen_row(matrix.type, matrix.data + at * size, to, matrix.columns);
    }
  }
  return result;
}

/// Rounds the values and stores them in the matrix: the reverse of widen().
template <class Wide>
void narrow(const std::vector<Wide>& values, const StoredMatrix& matrix) {
  const Wide* from = values.data();
  const std::size_t size = program::element_size(matrix.type);
  for (std::size_t b = 0; b < matrix.batch; ++b) {
    for (std::size_t row = 0; row < matrix.rows; ++row, from += matrix.columns) {
      const std::size_t at = b * matrix.batch_stride + row * matrix.row_stride;
      narrow_row(from, matrix.type, matrix.data + at * size, matrix.columns);
    }
  }
}

}  // namespace isoscale::executor::host
