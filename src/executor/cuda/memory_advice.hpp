// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "executor/resolver.hpp"
#include "program/op.hpp"

namespace isoscale::executor::cuda {

/// program::Advise. A prefetch is work of the stream; advice holds when the call returns.
struct AdviseCall {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  program::Advice advice = program::Advice::prefetch_device;
  int device = 0;
};
/// Throws CudaError.
void launch(const AdviseCall& call, cudaStream_t stream);
/// Throws base::Error unless the slice lies in managed memory.
[[nodiscard]] AdviseCall prepare_op(const Resolver& resolver, const program::Advise& op);

/// Whether some op of a program is advice, which needs a GPU and a system that move pages on their
/// own.
[[nodiscard]] bool gives_advice(const program::RankProgram& program);
[[nodiscard]] bool moves_pages();

}  // namespace isoscale::executor::cuda
