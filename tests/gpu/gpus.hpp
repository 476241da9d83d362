// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "executor/cuda/device.hpp"

/// CUDA executors on this machine's GPUs.
namespace isoscale::gpu_tests {

/// Collective. Ranks share a GPU where there are fewer of them: results do not depend on it.
[[nodiscard]] inline std::unique_ptr<executor::Executor> make_executor(
    const comm::Communicator& world, settings::Graph graph = settings::Graph::off) {
  executor::CudaOptions options;
  options.share = settings::ShareGpu::yes;
  options.graph = graph;
  return executor::make_cuda_executor(options, world);
}

}  // namespace isoscale::gpu_tests
