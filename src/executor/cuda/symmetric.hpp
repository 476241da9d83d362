// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/device.hpp"

namespace isoscale::executor::cuda {

/// Why no program can travel by Transport::symmetric with the NCCL that runs, of version `nccl` as
/// it encodes it, on a GPU so chosen; "" when some can.
[[nodiscard]] std::string symmetric_problem(int nccl, const ChosenGpu& chosen);

/// Throws Unsupported unless the GPUs of every communicator that has symmetric memory to carry map
/// each other's windows. Collective over these; to be asked before windows are made, since windows
/// that are not mapped look like others.
void require_windows(const program::ProgramSet& set, const Communicators& communicators);

/// Throws Unsupported unless NCCL has a symmetric kernel for each collective of `set` that is to
/// use one, and the ranks of its group reach each other's memory: NCCL would silently take another
/// way. To be asked once windows have been made.
void require_symmetric(const program::ProgramSet& set, const Communicators& communicators);

}  // namespace isoscale::executor::cuda
