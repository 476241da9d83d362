// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/handles.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

void log_release(const char* what, int status) noexcept {
  if (status == 0 || status == static_cast<int>(cudaErrorCudartUnloading)) return;
  try {
    base::warn(fmt::format("giving back {} failed with status {}", what, status));
  } catch (...) {  // out of memory: nobody can be told
  }
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
