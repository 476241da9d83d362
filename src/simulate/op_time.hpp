// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "units/quantity.hpp"

/// How long ops take on a machine: what it measured where that says something, else its sheet.
namespace isoscale::simulate {

/// Seconds of one GEMM with operands of `type`. Throws base::UsageError when the machine says
/// nothing of that type.
[[nodiscard]] double gemm_seconds(const Machine& machine, const program::Gemm& gemm,
                                  program::DType type);
/// Seconds of an op that neither multiplies nor communicates and moves `bytes` of device memory.
[[nodiscard]] double local_seconds(const Machine& machine, program::OpKind kind, double bytes);
/// Seconds of a collective of `bytes` (as OutlineOp::bytes counts them), all members there.
[[nodiscard]] double collective_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                        const GroupPlace& place);
/// Seconds of one message.
[[nodiscard]] double message_seconds(const Machine& machine, double bytes, const GroupPlace& place);

/// Times of each op of a program's section, as `rank` plays it; of communication from the last
/// arrival.
[[nodiscard]] std::vector<units::Nanoseconds> op_times(const Machine& machine,
                                                       const program::RankProgram& program,
                                                       program::Section section,
                                                       const mesh::Shape& shape,
                                                       const Layout& layout, int rank);

}  // namespace isoscale::simulate
