// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/errors_and_handles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/warn.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Logs the message that check() would throw.
template <class Status>
void log_failure(const char* what, Status status) noexcept {
  try {
    check(status);
  } catch (const base::Error& error) {
    try {
      base::warn(fmt::format("isoscale: warning: giving back {} failed: {}", what, error.what()));
    } catch (...) {  // out of memory: the failure cannot be reported
    }
  } catch (...) {  // check() had no memory for its message
  }
}

}  // namespace

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

void log_release(const char* what, cudaError_t status) noexcept {
  if (status != cudaErrorCudartUnloading) log_failure(what, status);
}
void log_release(const char* what, cublasStatus_t status) noexcept { log_failure(what, status); }
void log_release(const char* what, ncclResult_t result) noexcept { log_failure(what, result); }

PinnedMemory pinned_words(std::size_t count) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, count * sizeof(std::uint32_t)));
  std::fill_n(static_cast<std::uint32_t*>(memory), count, 0U);
  return PinnedMemory{memory};
}

Stream make_stream(Priority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     priority == Priority::high ? greatest : least));
  return Stream{stream};
}

Event make_event(Timing timing) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event,
                                 timing == Timing::on ? cudaEventDefault : cudaEventDisableTiming));
  return Event{event};
}

}  // namespace isoscale::executor::cuda
