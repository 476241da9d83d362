// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The calls of the driver by which a stream writes a value into memory, or waits for one.
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "tests/cuda/standin.hpp"

namespace isoscale::standin {
namespace {

/// Work on a word takes no time in the model.
class OnWord : public Work {
 public:
  OnWord(std::uint32_t* word, std::uint32_t value) : word_(word), value_(value) {}
  [[nodiscard]] bool takes_time() const override { return false; }

 protected:
  std::uint32_t* word_;
  std::uint32_t value_;
};

class WriteValue final : public OnWord {
 public:
  using OnWord::OnWord;
  bool run() override {
    require_reachable(word_, sizeof *word_);
    std::atomic_ref{*word_}.store(value_, std::memory_order_relaxed);  // other threads look
    ++machine().marks;
    return true;
  }
  [[nodiscard]] WorkPointer again() const override {
    return std::make_shared<WriteValue>(word_, value_);
  }
};

class WaitValue final : public OnWord {
 public:
  using OnWord::OnWord;
  /// Notes when the host has let it pass, in the model.
  void look() {
    if (passed_) return;  // the word may be gone
    const std::uint32_t held = std::atomic_ref{*word_}.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(held - value_) >= 0) passed_ = machine().host_time;
  }
  bool run() override {
    require_reachable(word_, sizeof *word_);
    look();
    if (!passed_) return false;
    machine().gpu_time = std::max(machine().gpu_time, *passed_);
    return true;
  }
  [[nodiscard]] WorkPointer again() const override {
    return std::make_shared<WaitValue>(word_, value_);
  }

 private:
  std::optional<std::int64_t> passed_;
};

CUresult write_value(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  if (!machine().settings.writes_values) return CUDA_ERROR_NOT_SUPPORTED;
  if (machine().sticky != cudaSuccess) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  submit(stream, std::make_shared<WriteValue>(reinterpret_cast<std::uint32_t*>(to), value));
  return CUDA_SUCCESS;
}

CUresult wait_value(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  if (!machine().settings.waits_for_values) return CUDA_ERROR_NOT_SUPPORTED;
  if (machine().sticky != cudaSuccess) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_INVALID_VALUE;
  auto wait = std::make_shared<WaitValue>(reinterpret_cast<std::uint32_t*>(at), value);
  machine().looks = {[wait] { wait->look(); }};
  submit(stream, wait);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace isoscale::standin

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                             unsigned /*version*/, unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* found) {
  using namespace isoscale::standin;
  *function = nullptr;
  if (std::string_view{symbol} == "cuStreamWriteValue32") {
    *function = reinterpret_cast<void*>(&write_value);
  } else if (std::string_view{symbol} == "cuStreamWaitValue32") {
    *function = reinterpret_cast<void*>(&wait_value);
  }
  *found = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
