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
#include "executor/host/reductions.hpp"
#include "executor/host/resolve.hpp"
#include "program/op.hpp"

/// One function per kind of op; all throw base::Error when the host cannot play it.
namespace isoscale::executor::host {

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Gemm& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Copy& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Add& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Cast& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Fill& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Update& op,
                              Powers powers_mode);

/// Of any types.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Checksum& op);

/// A cast between any floating types.
[[nodiscard]] CastCall prepare_cast(const Resolver& resolver, const program::Cast& op);

/// What an update reads and writes its weight and its gradient as.
struct UpdateElements {
  Element weight, gradient;
};
[[nodiscard]] UpdateCall prepare_update(const Resolver& resolver, const program::Update& op,
                                        Powers powers_mode, UpdateElements elements);

/// Whether an op needs types or rounding that the functions above refuse.
[[nodiscard]] bool needs_emulation(const Resolver& resolver, const program::Payload& payload);
/// Gemm, Add, Cast and Update in any floating types; the same errors as above.
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Gemm& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Add& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Cast& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Update& op,
                                    Powers powers_mode);

/// `stream` is the one that the op was written for, folded or not: it picks the communicator.
/// `staging` is that stream's, see staging_bytes; `own` makes the reductions that MPI has not.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Collective& op,
                              program::StreamId stream, const Communicators& communicators,
                              std::uint64_t elements_per_call, std::span<std::byte> staging,
                              OwnReductions& own);

/// Appends `count` elements as messages of at most `elements_per_call`; a message of none is one.
void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call);

/// MPI's name for what is stored; types that MPI does not know travel as integers of their size.
[[nodiscard]] MPI_Datatype mpi_type(program::DType type);
/// Throws base::Error for types that neither MPI nor `own` can reduce.
[[nodiscard]] MPI_Op mpi_operation(program::Reduction reduction, program::DType type,
                                   OwnReductions& own);

}  // namespace isoscale::executor::host
