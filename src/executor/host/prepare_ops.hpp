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

/// Prepares the calls of ops, with one function per kind; all throw base::Error if the host cannot
/// play the op.
namespace isoscale::executor::host {

/// `stream` is the stream of the op in the program, folded or not: it selects the communicator.
/// `staging` is the memory of staging_bytes() for that stream; `own` makes the reductions that MPI
/// does not have.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Collective& op,
                              program::StreamId stream, const Communicators& communicators,
                              std::uint64_t elements_per_call, std::span<std::byte> staging,
                              OwnReductions& own);

/// Appends messages of at most `elements_per_call` elements, `count` in total; one message if
/// `count` is 0.
void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call);

// Ops that compute must be in f64 or f32; those that only move elements may have any type.
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

}  // namespace isoscale::executor::host
