// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <source_location>

#include "base/error.hpp"

/// Every call of a library goes through check(), which throws with the library's own words.
namespace isoscale::executor::cuda {

class CudaError : public base::Error {
 public:
  using Error::Error;
};
class CublasError : public base::Error {
 public:
  using Error::Error;
};
class NcclError : public base::Error {
 public:
  using Error::Error;
};
/// NCCL does not do what it was asked for: no failure of a machine.
class NcclRefusal : public NcclError {
 public:
  using NcclError::NcclError;
};
[[nodiscard]] bool is_refusal(ncclResult_t result);

/// Also clears the error, unless it is one that the device cannot recover from.
void check(cudaError_t status, std::source_location where = std::source_location::current());
void check(cublasStatus_t status, std::source_location where = std::source_location::current());
/// ncclInProgress is a success: the call goes on in the background.
void check(ncclResult_t result, std::source_location where = std::source_location::current());

}  // namespace isoscale::executor::cuda
