// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/call.hpp"
#include "executor/resolver.hpp"

/// Like prepare_op.hpp, of norms, activations and softmax: all operands of one type that kernels
/// have, in memory that they reach.
namespace isoscale::executor::cuda {

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op);

}  // namespace isoscale::executor::cuda
