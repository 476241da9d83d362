// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/op.hpp"
#include "simulate/machine.hpp"

/// What the time of an op is put together from; seconds.
namespace isoscale::simulate {

/// Throws base::UsageError when the machine says nothing of that type.
[[nodiscard]] const MatrixRate& rate_of(const Machine& machine, program::ComputeMode mode,
                                        program::DType type);
/// From the end of an op to the start of the next.
[[nodiscard]] double launch_of(const Machine& machine);
/// Before communication: a sheet's latencies have the launch in them, measured times do not.
[[nodiscard]] double gap_of(const Machine& machine);
/// Of `bytes` read and written in device memory; the machine says how fast.
[[nodiscard]] double memory_seconds(const Machine& machine, double bytes);
/// Of a GEMM that moves `bytes` of memory: both at once, whichever takes longer.
[[nodiscard]] double gemm_time(const Machine& machine, const program::Gemm& gemm,
                               program::DType type, double bytes);
/// Of an op that names `bytes`, of which a sheet says how fast those that it moves go.
[[nodiscard]] double local_time(const Machine& machine, program::OpKind kind, double bytes,
                                double moved);

}  // namespace isoscale::simulate
