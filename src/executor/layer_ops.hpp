// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/resolve.hpp"
#include "program/op.hpp"

/// What both executors ask of norms, activations and softmax.
namespace isoscale::executor {

/// The floating type of all operands. All throw base::Error when operands differ in type, when the
/// type is none to compute with, or when the inverses of a norm are not one per row, in f32 or, of
/// f64 rows, in f64.
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver,
                                     const program::ActivationGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::SoftmaxGradient& op);

}  // namespace isoscale::executor
