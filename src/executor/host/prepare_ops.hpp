// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/host/calls.hpp"
#include "executor/host/communicators.hpp"
#include "executor/host/host.hpp"
#include "executor/host/prepare.hpp"
#include "program/op.hpp"

/// One function per kind of op; all throw base::Error if the host cannot play the op.
namespace isoscale::executor::host {

/// `stream` is the stream that the op was written for, folded or not: it selects the communicator.
/// `staging` is that stream's, see staging_bytes; `own` makes the reductions that MPI does not
/// have.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Collective& op,
                              program::StreamId stream, const Communicators& communicators,
                              std::uint64_t elements_per_call, std::span<std::byte> staging,
                              OwnReductions& own);

/// Appends `count` elements as messages of at most `elements_per_call`; 0 elements are one message.
void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call);

// These compute in f64 and f32; those that compute nothing take any type.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Gemm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Copy& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Add& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Cast& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Fill& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Update& op,
                              Powers powers_mode);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Checksum& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Rows& op);

/// True if an op needs types or rounding that the functions above refuse.
[[nodiscard]] bool needs_emulation(const Resolver& resolver, const program::Payload& payload);
// These take every floating type, and throw the same errors as the functions above.
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Gemm& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Add& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Cast& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Update& op,
                                    Powers powers_mode);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver,
                                    const program::ActivationGradient& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::SoftmaxGradient& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Rows& op);

}  // namespace isoscale::executor::host
