// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/program.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::hybrid {

/// dp x tp x pp training of the GEMM stack: one program per pipeline stage.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::hybrid
