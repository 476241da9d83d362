// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>

/// Linear least squares for laws of a few coefficients.
namespace isoscale::analysis {

/// One sample of y = k_0 u_0 + k_1 u_1 + ..., all divided by what its error grows with.
template <std::size_t n>
struct LinearSample {
  std::array<double, n> u{};
  double y = 0;
};

template <std::size_t n>
using SquareMatrix = std::array<std::array<double, n>, n>;

template <std::size_t n>
struct LinearFit {
  std::array<double, n> k{};
  SquareMatrix<n> covariance{};  ///< of k
  std::size_t freedom = 0;       ///< degrees of freedom that the residuals have
};

/// The inverse of a symmetric positive definite matrix by Gauss and Jordan; absent where some
/// column tells nothing that the others do not.
template <std::size_t n>
[[nodiscard]] std::optional<SquareMatrix<n>> inverse(SquareMatrix<n> matrix) {
  constexpr double independent = 1e-12;  // what is left of a column, over the column
  const auto whole = matrix;
  SquareMatrix<n> result{};
  for (std::size_t i = 0; i < n; ++i) result[i][i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(matrix[i][i] > independent * whole[i][i])) return std::nullopt;
    const double pivot = matrix[i][i];
    for (std::size_t j = 0; j < n; ++j) {
      matrix[i][j] /= pivot;
      result[i][j] /= pivot;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row][i];
      for (std::size_t j = 0; row != i && j < n; ++j) {
        matrix[row][j] -= factor * matrix[i][j];
        result[row][j] -= factor * result[i][j];
      }
    }
  }
  return result;
}

/// Ordinary least squares with the residuals' variance; absent without more samples than
/// coefficients, and where the samples do not tell all coefficients apart.
template <std::size_t n>
[[nodiscard]] std::optional<LinearFit<n>> least_squares(std::span<const LinearSample<n>> samples) {
  if (samples.size() <= n) return std::nullopt;
  SquareMatrix<n> normal{};
  std::array<double, n> right{};
  for (const auto& [u, y] : samples) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) normal[i][j] += u[i] * u[j];
      right[i] += u[i] * y;
    }
  }
  const auto inverted = inverse<n>(normal);
  if (!inverted) return std::nullopt;
  LinearFit<n> result{.freedom = samples.size() - n};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) result.k[i] += (*inverted)[i][j] * right[j];
  }
  double squares = 0;
  for (const auto& [u, y] : samples) {
    const double error = y - std::inner_product(u.begin(), u.end(), result.k.begin(), 0.0);
    squares += error * error;
  }
  result.covariance = *inverted;
  for (auto& row : result.covariance) {
    for (double& value : row) value *= squares / static_cast<double>(result.freedom);
  }
  return result;
}

}  // namespace isoscale::analysis
