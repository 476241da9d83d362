// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include "executor/resolver.hpp"

namespace isoscale::executor::cuda {

/// A copy of many pieces by one kernel; between memories that the device reaches. Rows of the
/// source may overlap.
struct CopyCall {
  StridedCopy pieces{};
};
[[nodiscard]] cudaError_t start(const CopyCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
