// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/gate.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/log.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/stream_words.hpp"

namespace isoscale::executor::cuda {

Gate::Gate(cudaStream_t main) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, sizeof(std::uint32_t)));
  memory_.reset(memory);
  auto* const word = static_cast<std::uint32_t*>(memory);
  *word = 0;
  if (const int status = wait_in_stream(main, word, 0); status != 0) {
    memory_.reset();
    static std::atomic_flag said;
    if (!said.test_and_set()) {
      base::warn(
          fmt::format("times of micro-benchmarks include the launch of their first op: the driver "
                      "does not make streams wait for a value (code {})",
                      status));
    }
    return;
  }
  check(cudaStreamSynchronize(main));
  word_ = word;
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

/// With the mutex held.
void Gate::let_pass() noexcept { std::atomic_ref{*word_}.store(times_, std::memory_order_release); }

void Gate::watch(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    is_watched_ = false;
    if (!changed_.wait(lock, stop, [&] { return state_ == State::closed; })) return;
    // Until the deadline, even if it opens sooner: plays follow each other at once, and waking this
    // thread in each would cost them time.
    is_watched_ = true;
    changed_.wait_until(lock, stop, deadline_, [] { return false; });
    if (state_ != State::closed || std::chrono::steady_clock::now() < deadline_) continue;
    state_ = State::late;
    let_pass();
  }
}

}  // namespace isoscale::executor::cuda
