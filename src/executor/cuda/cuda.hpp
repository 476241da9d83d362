// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "executor/plugin.hpp"

namespace isoscale::executor {

/// cuBLASLt and NCCL on this rank's GPU. Collective over `world`; throws base::UsageError on all
/// ranks when one finds no GPU for itself.
[[nodiscard]] std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options,
                                                           const comm::Communicator& world);

}  // namespace isoscale::executor
