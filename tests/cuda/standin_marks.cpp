// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The one call of the driver that the executor makes: a stream writes a value into memory.
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "tests/cuda/standin.hpp"
#include "tests/cuda/streams.hpp"

namespace isoscale::standin {
namespace {

CUresult write_value(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  if (!machine().settings.writes_values) return CUDA_ERROR_NOT_SUPPORTED;
  if (machine().sticky != cudaSuccess) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  auto* const word = reinterpret_cast<std::uint32_t*>(to);
  submit(stream, [word, value] {
    require_reachable(word, sizeof *word);
    std::atomic_ref{*word}.store(value, std::memory_order_relaxed);  // other threads look
    ++machine().marks;
  });
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace isoscale::standin

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  using namespace isoscale::standin;
  const bool knows = std::string_view{symbol} == "cuStreamWriteValue32";
  *function = knows ? reinterpret_cast<void*>(&write_value) : nullptr;
  *found = knows ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
