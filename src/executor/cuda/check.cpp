// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/check.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace isoscale::executor::cuda {

void check(cudaError_t status, std::source_location where) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw CudaError(fmt::format("CUDA: {} ({}, code {})", cudaGetErrorString(status),
                              cudaGetErrorName(status), static_cast<int>(status)),
                  where);
}

void check(cublasStatus_t status, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CublasError(fmt::format("cuBLAS: {} ({}, code {})", cublasLtGetStatusString(status),
                                cublasLtGetStatusName(status), static_cast<int>(status)),
                    where);
}

bool is_refusal(ncclResult_t result) {
  return result == ncclInvalidArgument || result == ncclInvalidUsage;
}

void check(ncclResult_t result, std::source_location where) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const char* const last = ncclGetLastError(nullptr);
  const std::string_view detail = last == nullptr ? "" : last;
  const std::string text =
      fmt::format("NCCL: {} (code {}){}{}", ncclGetErrorString(result), static_cast<int>(result),
                  detail.empty() ? "" : ": ", detail);
  if (is_refusal(result)) throw NcclRefusal(text, where);
  throw NcclError(text, where);
}

}  // namespace isoscale::executor::cuda
