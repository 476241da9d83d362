// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/call.hpp"
#include "executor/cuda/communicators.hpp"
#include "executor/resolver.hpp"

/// One function per kind of op that needs nothing but addresses and communicators; all throw
/// base::Error when the device cannot play it.
namespace isoscale::executor::cuda {

/// `barrier` is a byte of device memory to reduce.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Collective& op,
                              ncclComm_t communicator, void* barrier);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Exchange& op,
                              const Communicators& communicators);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Copy& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Add& op);
/// `largest` is a word of device memory of this op's own.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Cast& op,
                              unsigned int* largest);
/// `staging` is device memory of host_fill_bytes.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Fill& op, void* staging);
/// Device memory that a fill of host memory goes through; 0 for others.
[[nodiscard]] units::Bytes host_fill_bytes(const Resolver& resolver, const program::Fill& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Update& op, Powers powers);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Checksum& op);

}  // namespace isoscale::executor::cuda
