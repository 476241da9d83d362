// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/stream_words.hpp"

#include <cuda.h>

namespace isoscale::executor::cuda {
namespace {

/// The driver's own call of either kind; nullptr when this driver does not know it.
using WordCall = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

WordCall find(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  constexpr unsigned version = 12000;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
  const cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  static_cast<void>(cudaGetLastError());
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<WordCall>(function);
}

int call(WordCall function, cudaStream_t stream, const std::uint32_t* word, std::uint32_t value,
         unsigned flags) {
  if (function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return function(stream, reinterpret_cast<CUdeviceptr>(word), value, flags);
}

}  // namespace

int write_in_stream(cudaStream_t stream, const std::uint32_t* to, std::uint32_t value) {
  static const WordCall write = find("cuStreamWriteValue32");
  // Whoever reads the word reads no other memory by it: a fence for the whole machine is not
  // needed.
  return call(write, stream, to, value, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
}

int wait_in_stream(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value) {
  static const WordCall wait = find("cuStreamWaitValue32");
  return call(wait, stream, at, value, CU_STREAM_WAIT_VALUE_GEQ);
}

}  // namespace isoscale::executor::cuda
