// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gate_and_progress_words.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/warn.hpp"
#include "executor/executor.hpp"

namespace isoscale::executor::cuda {
namespace {

/// The type of cuStreamWriteValue32 and cuStreamWaitValue32; a null pointer means that this driver
/// lacks the function.
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

/// Makes the stream wait until the word at `at` is `value` or greater, modulo 2^32. Returns the
/// driver's code, as write_in_stream() does.
int wait_in_stream(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value) {
  static const WordCall wait = find("cuStreamWaitValue32");
  return call(wait, stream, at, value, CU_STREAM_WAIT_VALUE_GEQ);
}

/// The largest share of a stream's time that its marks may take.
constexpr double most_share = 0.005;

/// Rates that no known GPU exceeds. The first is the rate of 8-bit GEMMs as measured on a GB200.
/// The others are in bytes per second: the bandwidth of its memory, and the sum of both directions
/// of its links (NVIDIA, Blackwell architecture technical brief).
constexpr double most_flop_per_second = 3.6e15, most_memory = 8e12, most_link = 1.8e12;

/// Returns a lower bound for the op's time on any GPU, in seconds.
double shortest(const program::OutlineOp& op) {
  const auto bytes = static_cast<double>(op.bytes);
  if (program::communicates(op.kind)) return bytes / most_link;
  return std::max(op.flop / most_flop_per_second, bytes / most_memory);
}

/// Returns words of pinned memory if the driver can do `operation` on them, which is tried on the
/// idle stream `main`. If it cannot, returns null and logs `warning`, unless `said` shows that this
/// process has logged it before.
PinnedMemory words_for(int (*operation)(cudaStream_t, const std::uint32_t*, std::uint32_t),
                       std::size_t count, cudaStream_t main, std::atomic_flag& said,
                       const char* warning) {
  PinnedMemory memory = pinned_words(count);
  if (const int status = operation(main, words_of(memory), 0); status != 0) {
    if (!said.test_and_set()) {
      base::warn(fmt::format("isoscale: warning: {} (code {})", warning, status));
    }
    return {};
  }
  check(cudaStreamSynchronize(main));
  return memory;
}

std::uint32_t read(std::uint32_t& word) {
  return std::atomic_ref{word}.load(std::memory_order_relaxed);
}

}  // namespace

int write_in_stream(cudaStream_t stream, const std::uint32_t* to, std::uint32_t value) {
  static const WordCall write = find("cuStreamWriteValue32");
  // No memory barrier is needed, but CUDA 12 and later do not support the flag that omits it.
  return call(write, stream, to, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

Gate::Gate(cudaStream_t main) {
  static std::atomic_flag said;
  memory_ = words_for(wait_in_stream, 1, main, said,
                      "times of micro-benchmarks include the launch of their first op: the driver "
                      "does not make streams wait for a value");
  if (!memory_) return;
  word_ = words_of(memory_);
  watcher_ = std::jthread{[this](const std::stop_token& stop) { watch(stop); }};
}

Gate::~Gate() { open(); }

void Gate::close(cudaStream_t stream) {
  if (word_ == nullptr) return;
  const std::scoped_lock lock{mutex_};
  const int status = wait_in_stream(stream, word_, times_ + 1);
  if (status != 0) {
    throw CudaError(fmt::format("CUDA: a stream cannot wait for a value (code {})", status));
  }
  ++times_;
  launched_ = 0;
  state_ = State::closed;
  deadline_ = std::chrono::steady_clock::now() + patience;
  if (!is_watched_) changed_.notify_all();
}

void Gate::launched() {
  if (++launched_ == most_ops) open();
}

void Gate::open() noexcept {
  const std::scoped_lock lock{mutex_};
  if (state_ != State::closed) return;
  state_ = State::open;
  let_pass();
}

bool Gate::was_late() const {
  const std::scoped_lock lock{mutex_};
  return state_ == State::late;
}

void Gate::abandon() noexcept {
  open();
  static_cast<void>(memory_.release());
}

/// Sets the word to the value for which streams wait at the gate. The caller must hold mutex_.
void Gate::let_pass() noexcept { std::atomic_ref{*word_}.store(times_, std::memory_order_release); }

void Gate::watch(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    is_watched_ = false;
    if (!changed_.wait(lock, stop, [&] { return state_ == State::closed; })) return;
    // The wait lasts until the deadline even if the gate opens sooner: timed runs follow each other
    // immediately, and waking this thread in each of them would cost time.
    is_watched_ = true;
    changed_.wait_until(lock, stop, deadline_, [] { return false; });
    if (state_ != State::closed || std::chrono::steady_clock::now() < deadline_) continue;
    state_ = State::late;
    let_pass();
  }
}

std::vector<bool> choose_marks(const program::Outline& section, units::Seconds cost) {
  std::array<double, program::max_streams> takes{};
  std::array<bool, program::max_streams> is_used{};
  for (const program::OutlineOp& op : section.ops) {
    takes[op.stream] += shortest(op);
    is_used[op.stream] = true;
  }
  const double apart = cost.value() / most_share;
  // A section with marks writes at least one word for the pass and two for each stream: one says
  // that no op has begun, the other that the first op begins.
  const auto always = 1 + 2 * static_cast<double>(std::ranges::count(is_used, true));
  if (always * apart > *std::ranges::max_element(takes)) return {};
  std::vector<bool> marked;
  std::array<double, program::max_streams> since{};
  since.fill(apart);
  for (const program::OutlineOp& op : section.ops) {
    const bool is_marked = since[op.stream] >= apart;
    marked.push_back(is_marked);
    if (is_marked) since[op.stream] = 0;
    since[op.stream] += shortest(op);
  }
  return marked;
}

Marks::Marks(std::size_t streams, cudaStream_t main) : streams_(streams) {
  static std::atomic_flag said;
  memory_ = words_for(write_in_stream, 1 + streams, main, said,
                      "if this run hangs, nobody can see at which op its GPUs are: the driver "
                      "does not write values in streams");
  words_ = words_of(memory_);
}

void Marks::write(std::size_t word, std::uint32_t value, cudaStream_t stream) const {
  if (words_ == nullptr) return;
  const int status = write_in_stream(stream, words_ + word, value);
  if (status == 0) return;
  throw CudaError(fmt::format("CUDA: a stream cannot write a value (code {})", status));
}

void Marks::pass(std::uint64_t number, cudaStream_t main) const {
  write(0, static_cast<std::uint32_t>(number), main);
}

void Marks::clear(std::span<const program::StreamId> streams, cudaStream_t main) const {
  for (const program::StreamId stream : streams) write(1U + stream, 0, main);
}

void Marks::begins(std::uint32_t op, program::StreamId stream, cudaStream_t handle) const {
  write(1U + stream, op + 1, handle);
}

std::uint32_t Marks::last_pass() const { return read(*words_); }

std::vector<std::uint32_t> Marks::begun() const {
  std::vector<std::uint32_t> result;
  for (std::size_t stream = 0; stream < streams_; ++stream) {
    const std::uint32_t word = read(words_[1 + stream]);
    result.push_back(word == 0 ? Whereabouts::no_op : word - 1);
  }
  return result;
}

}  // namespace isoscale::executor::cuda
