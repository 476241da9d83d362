// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/host/wide.hpp"
#include "program/op.hpp"

/// Norms, activations and softmax with everything looked up. f64 and f32 are computed as they are;
/// elements of other types are widened to f32 row by row and rounded once, which prepare refuses
/// unless it was asked to emulate. Matrices that do not exist have no data.
namespace isoscale::executor::host {

struct NormCall {
  StoredMatrix x, addend, sum, y;
  std::byte* inverse = nullptr;  ///< f64 beside f64, else f32
  double epsilon = 0;
};
void run(const NormCall& call);

struct NormGradientCall {
  StoredMatrix dy, s, addend, dx;
  const std::byte* inverse = nullptr;
};
void run(const NormGradientCall& call);

struct ActivationCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  StoredMatrix x, up, y;
};
void run(const ActivationCall& call);

struct ActivationGradientCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  StoredMatrix dy, x, up, dx, dup;
};
void run(const ActivationGradientCall& call);

struct SoftmaxCall {
  StoredMatrix x, y;
};
void run(const SoftmaxCall& call);

struct SoftmaxGradientCall {
  StoredMatrix y, dy, dx;
};
void run(const SoftmaxGradientCall& call);

}  // namespace isoscale::executor::host
