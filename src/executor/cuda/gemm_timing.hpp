// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/gemm_plan.hpp"
#include "executor/executor.hpp"

namespace isoscale::executor::cuda {

/// The fastest of the algorithms that the library's heuristic offers for a problem with at most
/// most_workspace bytes of workspace, timed on the problem's own operands, which are overwritten
/// with random values first, and by scales of 1. All are timed in turn, in rounds, once the GPU has
/// worked long enough for its clock to settle, and the best of them again for longer. Throws
/// base::Error when there is none.
[[nodiscard]] GemmChoice fastest_algorithm(cublasLtHandle_t library, const GemmProblem& problem,
                                           const std::string& shape);

}  // namespace isoscale::executor::cuda
