// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/handles.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

namespace {

/// As check() would say it.
template <class Status>
void log_failure(const char* what, Status status) noexcept {
  try {
    check(status);
  } catch (const base::Error& error) {
    try {
      base::warn(fmt::format("isoscale: warning: giving back {} failed: {}", what, error.what()));
    } catch (...) {  // out of memory: nobody can be told
    }
  } catch (...) {  // as well
  }
}

}  // namespace

void log_release(const char* what, cudaError_t status) noexcept {
  if (status != cudaErrorCudartUnloading) log_failure(what, status);
}
void log_release(const char* what, cublasStatus_t status) noexcept { log_failure(what, status); }
void log_release(const char* what, ncclResult_t result) noexcept { log_failure(what, result); }

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
