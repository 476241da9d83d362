// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/log.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/stream_words.hpp"
#include "executor/executor.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr double most_share = 0.005;

/// As fast as any GPU is known to be: 8-bit GEMMs as measured on a GB200, its memory, and both ways
/// of its links together (NVIDIA, Blackwell architecture technical brief).
constexpr double most_flop_per_second = 3.6e15, most_memory = 8e12, most_link = 1.8e12;

/// Seconds, at least.
double shortest(const program::OutlineOp& op) {
  const auto bytes = static_cast<double>(op.bytes);
  if (program::communicates(op.kind)) return bytes / most_link;
  return std::max(op.flop / most_flop_per_second, bytes / most_memory);
}

std::uint32_t read(std::uint32_t& word) {
  return std::atomic_ref{word}.load(std::memory_order_relaxed);
}

}  // namespace

std::vector<bool> choose_marks(const program::Outline& section, units::Seconds cost) {
  std::array<double, program::max_streams> takes{};
  std::array<bool, program::max_streams> is_used{};
  for (const program::OutlineOp& op : section.ops) {
    takes[op.stream] += shortest(op);
    is_used[op.stream] = true;
  }
  const double apart = cost.value() / most_share;
  // The pass, and of each stream that nothing has begun and its first op.
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
  void* memory = nullptr;
  check(cudaMallocHost(&memory, (1 + streams) * sizeof(std::uint32_t)));
  memory_.reset(memory);
  auto* const words = static_cast<std::uint32_t*>(memory);
  std::fill_n(words, 1 + streams, 0U);
  const int status = write_in_stream(main, words, 0);
  if (status == 0) {
    check(cudaStreamSynchronize(main));
    words_ = words;
    return;
  }
  memory_.reset();
  static std::atomic_flag said;
  if (!said.test_and_set()) {
    base::warn(
        fmt::format("were this run to hang, its GPUs could not tell at which op: the driver does "
                    "not write values in streams (code {})",
                    status));
  }
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
