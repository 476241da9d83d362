// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <source_location>

#include "base/error.hpp"
#include "base/handle.hpp"

/// check(), which every call of a CUDA library goes through and which throws with the library's own
/// words, and owners of what the libraries give out.
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

/// Logs a failure to give something back. CUDA gives nothing back any more when the process ends;
/// NCCL may go on in the background.
void log_release(const char* what, cudaError_t status) noexcept;
void log_release(const char* what, cublasStatus_t status) noexcept;
void log_release(const char* what, ncclResult_t result) noexcept;

template <class Pointer, auto release>
struct ReleasedBy {
  using type = Pointer;
  static type null() { return nullptr; }
  static void free(type handle) noexcept {
    const char* const what = std::source_location::current().function_name();
    log_release(what, release(handle));
  }
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

/// How much a stream's work may overtake that of others.
enum class Priority : std::uint8_t { normal, high };
[[nodiscard]] Stream make_stream(Priority priority);

/// An event remembers when it happened, or does not and costs less.
enum class Timing : std::uint8_t { off, on };
[[nodiscard]] Event make_event(Timing timing);

}  // namespace isoscale::executor::cuda
