// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/kernel_shim/fibers.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "executor/cuda/kernels/launch.cuh"
#include "tests/cuda/standin.hpp"

namespace isoscale::kernel_shim {
namespace {

using executor::cuda::warp_threads;

constexpr std::size_t stack_bytes = std::size_t{64} << 10U;
constexpr std::chrono::seconds patience{20};  // of a block whose threads only look and wait

std::mutex failure_mutex;
std::string first_failure;
std::vector<Grid>* held = nullptr;
std::atomic<std::uint64_t> seed{1};

void fail(const std::string& why) {
  const std::scoped_lock lock{failure_mutex};
  if (first_failure.empty()) first_failure = why;
}

enum class State : std::uint8_t { ready, at_barrier, in_exchange, done };

struct Fiber {
  jmp_buf place{};
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
};
struct Thread {
  KernelIndex index;
  State state = State::ready;
  std::source_location at{};
  std::uint64_t lanes = 0, value = 0;
  Fiber* fiber = nullptr;
};

/// Leaves one stack for another. Unlike swapcontext it makes no call to the kernel.
void change(jmp_buf& from, jmp_buf& to) {
  if (_setjmp(from) == 0) _longjmp(to, 1);
}

/// The threads of one block. A fiber runs one thread after the other until one of them has to wait.
class Block {
 public:
  Block(const Grid& grid, KernelIndex index) : grid_(grid), index_(index), random_(seed++) {
    for (unsigned y = 0; y < grid.threads.y; ++y) {
      for (unsigned x = 0; x < grid.threads.x; ++x) threads_.push_back({.index = {x, y, 0}});
    }
    for (std::size_t t = 0; t < threads_.size(); ++t) fresh_.push_back(t);
    std::ranges::shuffle(fresh_, random_);
    seen_.resize((threads_.size() + warp_threads - 1) / warp_threads * warp_threads);
  }

  void run();
  void yield(State why) {
    Thread& mine = threads_[running_];
    mine.state = why;
    if (why == State::ready) ready_.push_back(running_);
    change(mine.fiber->place, scheduler_);
  }
  [[nodiscard]] Thread& running() { return threads_[running_]; }
  [[nodiscard]] const std::uint64_t* seen_by_warp() const {
    return seen_.data() + running_ / warp_threads * warp_threads;
  }

 private:
  void start_fiber();
  [[noreturn]] static void fiber_main();
  void run_fresh(Fiber* fiber);
  void resume(std::size_t thread);
  [[nodiscard]] std::optional<std::size_t> missing_thread(std::size_t first,
                                                          const Thread& waiting) const;
  bool release_warps(bool must);
  [[nodiscard]] bool release_barrier();
  void release(std::size_t thread) {
    threads_[thread].state = State::ready;
    ready_.push_back(thread);
  }
  void enter(std::size_t thread) {
    running_ = thread;
    threadIdx = threads_[thread].index;
  }

  const Grid& grid_;
  KernelIndex index_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<std::size_t> fresh_, ready_;  ///< not begun; free to go on
  std::vector<std::uint64_t> seen_;         ///< of each thread, in the last exchange of its warp
  std::size_t running_ = 0;
  jmp_buf scheduler_{};
};

constinit thread_local Block* current = nullptr;
constinit thread_local Fiber* starting = nullptr;  ///< the newest
thread_local std::vector<std::unique_ptr<Fiber>> fibers;
thread_local std::vector<Fiber*> idle;

/// Lets an idle fiber, else a new one, run fresh threads.
void Block::start_fiber() {
  if (!idle.empty()) {
    Fiber* const fiber = idle.back();
    idle.pop_back();
    return change(scheduler_, fiber->place);
  }
  starting = fibers.emplace_back(std::make_unique<Fiber>()).get();
  getcontext(&starting->context);
  starting->context.uc_stack.ss_sp = starting->stack.get();
  starting->context.uc_stack.ss_size = stack_bytes;
  makecontext(&starting->context, &Block::fiber_main, 0);
  if (_setjmp(scheduler_) == 0) setcontext(&starting->context);
}

void Block::fiber_main() {
  Fiber* const mine = starting;
  while (true) {
    current->run_fresh(mine);
    idle.push_back(mine);
    change(mine->place, current->scheduler_);
  }
}

void Block::run_fresh(Fiber* fiber) {
  while (!fresh_.empty()) {
    const std::size_t thread = fresh_.back();
    fresh_.pop_back();
    threads_[thread].fiber = fiber;
    enter(thread);
    grid_.thread();
    threads_[running_].state = State::done;  // not `thread`: another one may run here meanwhile
    if (!ready_.empty() && random_() % 2 == 0) return;
  }
}

void Block::resume(std::size_t thread) {
  enter(thread);
  change(scheduler_, threads_[thread].fiber->place);
}

/// The thread that an exchange of the warp names and that has not reached it, if there is one;
/// `waiting` has reached it.
std::optional<std::size_t> Block::missing_thread(std::size_t first, const Thread& waiting) const {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    if ((waiting.lanes >> lane & 1U) == 0) continue;
    const std::size_t t = first + lane;
    if (t < threads_.size() && threads_[t].state == State::in_exchange &&
        threads_[t].lanes == waiting.lanes && threads_[t].at.line() == waiting.at.line()) {
      continue;
    }
    return t;
  }
  return std::nullopt;
}

/// Lets those warps go on of which all that an exchange names have reached it. `must`: nobody else
/// can run, so that a thread that is missing is a failure.
bool Block::release_warps(bool must) {
  bool any = false;
  for (std::size_t first = 0; first < threads_.size(); first += warp_threads) {
    const std::span warp = std::span{threads_}.subspan(first).first(
        std::min<std::size_t>(warp_threads, threads_.size() - first));
    const auto found = std::ranges::find(warp, State::in_exchange, &Thread::state);
    if (found == warp.end()) continue;
    const Thread waiting = *found;
    if (const auto missing = missing_thread(first, waiting)) {
      if (!must) continue;
      fail("line " + std::to_string(waiting.at.line()) + ": a warp operation that thread " +
           std::to_string(*missing) + " does not reach");
      return false;
    }
    for (std::size_t lane = 0; lane < warp.size(); ++lane) {
      if ((waiting.lanes >> lane & 1U) == 0) continue;
      seen_[first + lane] = warp[lane].value;
      release(first + lane);
    }
    any = true;
  }
  return any;
}

bool Block::release_barrier() {
  const auto first = std::ranges::find(threads_, State::at_barrier, &Thread::state);
  if (first == threads_.end()) return false;  // all are done
  for (const Thread& thread : threads_) {
    if (thread.state == State::done) continue;
    if (thread.state == State::at_barrier && thread.at.line() == first->at.line()) continue;
    fail("line " + std::to_string(first->at.line()) + ": a barrier that not all threads reach");
    return false;
  }
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (threads_[t].state == State::at_barrier) release(t);
  }
  return true;
}

void Block::run() {
  current = this;
  blockIdx = index_;
  blockDim = grid_.threads;
  gridDim = grid_.blocks;
  auto last_change = std::chrono::steady_clock::now();
  while (true) {
    // Now and then, so that a warp may be far ahead of others.
    if (random_() % 16 == 0) release_warps(false);
    if (!fresh_.empty() && (ready_.empty() || random_() % 2 == 0)) {
      start_fiber();
    } else if (!ready_.empty()) {
      std::swap(ready_[random_() % ready_.size()], ready_.back());
      const std::size_t thread = ready_.back();
      ready_.pop_back();
      resume(thread);
      const bool only_looks = !ready_.empty() && ready_.back() == thread;
      const auto now = std::chrono::steady_clock::now();
      if (!only_looks) last_change = now;
      if (only_looks) std::this_thread::yield();
      if (now - last_change > patience) return fail("a thread waits for ever");
    } else if (!release_warps(true) && !release_barrier()) {
      return;
    }
  }
}

void play_block(const Grid& grid, KernelIndex index) {
  Block block{grid, index};
  block.run();
  if (idle.size() == fibers.size()) return;
  // Some threads of a failed block have not ended; their stacks are of no use any more.
  std::erase_if(fibers,
                [](const auto& fiber) { return std::ranges::count(idle, fiber.get()) == 0; });
}

/// Calls visit for each block, or fails where CUDA would refuse the launch.
void for_each_block(const Grid& grid, const std::function<void(KernelIndex)>& visit) {
  constexpr unsigned most_threads = 1024, most_down = 65535;
  const unsigned threads = grid.threads.x * grid.threads.y;
  if (threads == 0 || threads > most_threads || grid.threads.z != 1 || grid.blocks.x == 0 ||
      grid.blocks.y == 0 || grid.blocks.y > most_down || grid.blocks.z == 0 ||
      grid.blocks.z > most_down) {
    return fail("a launch of " + std::to_string(grid.blocks.x) + " x " +
                std::to_string(grid.blocks.y) + " blocks of " + std::to_string(threads));
  }
  for (unsigned z = 0; z < grid.blocks.z; ++z) {
    for (unsigned y = 0; y < grid.blocks.y; ++y) {
      for (unsigned x = 0; x < grid.blocks.x; ++x) visit({x, y, z});
    }
  }
}

}  // namespace

void submit(cudaStream_t stream, Grid grid) {
  if (held != nullptr) {
    held->push_back(std::move(grid));
    return;
  }
  standin::submit(stream, [grid = std::move(grid)] {
    for_each_block(grid, [&](KernelIndex index) { play_block(grid, index); });
  });
}

void play_together(const std::function<void()>& starts) {
  std::vector<Grid> grids;
  held = &grids;
  starts();
  held = nullptr;
  std::vector<std::jthread> blocks;
  for (const Grid& grid : grids) {
    for_each_block(grid, [&](KernelIndex index) {
      blocks.emplace_back([&grid, index] { play_block(grid, index); });
    });
  }
}

std::string take_failure() {
  const std::scoped_lock lock{failure_mutex};
  return std::exchange(first_failure, {});
}

void wait_at_barrier(const std::source_location& at) {
  current->running().at = at;
  current->yield(State::at_barrier);
}

const std::uint64_t* exchange(std::uint64_t lanes, std::uint64_t value,
                              const std::source_location& at) {
  Thread& mine = current->running();
  mine.at = at;
  mine.lanes = lanes;
  mine.value = value;
  current->yield(State::in_exchange);
  return current->seen_by_warp();
}

void pause() { current->yield(State::ready); }

}  // namespace isoscale::kernel_shim
