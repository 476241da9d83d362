// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "base/error.hpp"
#include "base/handle.hpp"

/// Provides check(), which tests the result of a call of CUDA, cuBLASLt or NCCL and throws with the
/// library's own message, and handles that own the objects of these libraries.
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
/// Thrown if NCCL rejects a request as invalid, which does not mean that the machine has a fault.
class NcclRefusal : public NcclError {
 public:
  using NcclError::NcclError;
};
[[nodiscard]] bool is_refusal(ncclResult_t result);

/// Throws CudaError or CublasError unless the call succeeded. A CUDA error from which the device
/// can recover is cleared, so that later calls do not report it again.
void check(cudaError_t status, std::source_location where = std::source_location::current());
void check(cublasStatus_t status, std::source_location where = std::source_location::current());
/// Throws NcclRefusal or NcclError unless the call succeeded or, with ncclInProgress, continues in
/// the background.
void check(ncclResult_t result, std::source_location where = std::source_location::current());

/// Logs a warning if the release of `what` failed. The result does not count as a failure if CUDA
/// is already shut down because the process ends, or if NCCL continues in the background.
void log_release(const char* what, cudaError_t status) noexcept;
void log_release(const char* what, cublasStatus_t status) noexcept;
void log_release(const char* what, ncclResult_t result) noexcept;

template <class Pointer, auto release>
struct ReleasedBy {
  using type = Pointer;
  static type null() { return nullptr; }
  static void free(type handle) noexcept { log_release("a resource of the GPU", release(handle)); }
};

using Stream = base::Handle<ReleasedBy<cudaStream_t, cudaStreamDestroy>>;
using Event = base::Handle<ReleasedBy<cudaEvent_t, cudaEventDestroy>>;
using CapturedGraph = base::Handle<ReleasedBy<cudaGraph_t, cudaGraphDestroy>>;
using ExecutableGraph = base::Handle<ReleasedBy<cudaGraphExec_t, cudaGraphExecDestroy>>;
using DeviceMemory = base::Handle<ReleasedBy<void*, cudaFree>>;
using PinnedMemory = base::Handle<ReleasedBy<void*, cudaFreeHost>>;
using CublasLt = base::Handle<ReleasedBy<cublasLtHandle_t, cublasLtDestroy>>;
using MatmulDescription = base::Handle<ReleasedBy<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using MatrixLayout = base::Handle<ReleasedBy<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using MatmulPreference =
    base::Handle<ReleasedBy<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

/// Returns `count` words of 32 bits in pinned host memory, all 0.
[[nodiscard]] PinnedMemory pinned_words(std::size_t count);
[[nodiscard]] inline std::uint32_t* words_of(const PinnedMemory& memory) {
  return static_cast<std::uint32_t*>(memory.get());
}

/// Drops the objects of handles without releasing them, since kernels may still use them.
template <class... Handles>
void abandon_all(Handles&... handles) noexcept {
  (static_cast<void>(handles.release()), ...);
}

/// The scheduling priority of a stream.
enum class Priority : std::uint8_t { normal, high };
[[nodiscard]] Stream make_stream(Priority priority);

/// Tells if an event stores the time when it happens; an event without timing costs less.
enum class Timing : std::uint8_t { off, on };
[[nodiscard]] Event make_event(Timing timing);

}  // namespace isoscale::executor::cuda
