// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda/calls.hpp"
#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/resolver.hpp"

/// Prepares the calls of ops, with one function per kind except GEMM; all throw base::Error if the
/// device cannot play the op.
namespace isoscale::executor::cuda {

/// `barrier` is a byte of device memory that a barrier reduces.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Collective& op,
                              ncclComm_t communicator, void* barrier);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Exchange& op,
                              const Communicators& communicators);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Copy& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Add& op);
/// `largest` is a word of device memory that only this op uses.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Cast& op,
                              unsigned int* largest);
/// `staging` is device memory of host_fill_bytes() bytes.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Fill& op, void* staging);
/// Returns the size of the staging memory of a fill of host memory; 0 for other fills.
[[nodiscard]] units::Bytes host_fill_bytes(const Resolver& resolver, const program::Fill& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Update& op, Powers powers);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Checksum& op);
/// The slice must lie in managed memory.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Advise& op);

// The operands of norms, activations and softmax must have one type, for which there are kernels,
// and must lie in memory that kernels reach.

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op);

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Spread& op);
/// `from` is a copy of the op's table in device memory.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Rows& op,
                              const std::uint32_t* from);

/// Returns new device memory with a copy of the words.
[[nodiscard]] DeviceMemory upload(const std::vector<std::uint32_t>& words);

}  // namespace isoscale::executor::cuda
