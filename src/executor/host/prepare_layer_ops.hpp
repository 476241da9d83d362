// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/host/calls.hpp"
#include "executor/host/resolve.hpp"
#include "program/op.hpp"

/// Like prepare_ops.hpp, of norms, activations and softmax. `prepare_op` throws base::Error where
/// the host does not compute in the operands' type, `prepare_emulated` takes every floating type.
namespace isoscale::executor::host {

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op);

[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver,
                                    const program::ActivationGradient& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::SoftmaxGradient& op);

}  // namespace isoscale::executor::host
