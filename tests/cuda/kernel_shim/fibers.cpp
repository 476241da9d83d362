// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/kernel_shim/fibers.hpp"

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <mutex>
#include <thread>

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
    ready_.resize((threads_.size() + warp_threads - 1) / warp_threads);
    seen_.resize(ready_.size() * warp_threads);
    for (std::size_t t = 0; t < threads_.size(); ++t) release(t);
  }

  void run();
  void yield(State why) {
    Thread& mine = threads_[running_];
    mine.state = why;
    if (why == State::ready) {
      release(running_);
      warp_ = random_() % ready_.size();
    }
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
  [[nodiscard]] bool choose();
  void resume(std::size_t thread);
  [[nodiscard]] bool misses_thread(std::size_t first, const Thread& waiting) const;
  enum class Exchange : std::uint8_t { none, waits, done };
  [[nodiscard]] Exchange release_warp(std::size_t warp);
  [[nodiscard]] bool release_warps();
  [[nodiscard]] bool release_barrier();
  void release(std::size_t thread) {
    threads_[thread].state = State::ready;
    ready_[thread / warp_threads].push_back(thread);
    ++ready_count_;
  }
  void enter(std::size_t thread) {
    running_ = thread;
    threadIdx = threads_[thread].index;
  }

  const Grid& grid_;
  KernelIndex index_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<std::vector<std::size_t>> ready_;  ///< by warp, threads that may begin or go on
  std::size_t ready_count_ = 0, warp_ = 0;       ///< the warp that runs for a while
  std::optional<std::size_t> next_;              ///< the thread to run next, taken from ready_
  std::vector<std::uint64_t> seen_;  ///< of each thread, in the last exchange of its warp
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

/// Runs the next thread, and those after it as long as they have not begun.
void Block::run_fresh(Fiber* fiber) {
  do {
    const std::size_t thread = *std::exchange(next_, std::nullopt);
    threads_[thread].fiber = fiber;
    enter(thread);
    grid_.thread();
    threads_[thread].state = State::done;
  } while (choose() && threads_[*next_].fiber == nullptr);
}

/// Takes the next thread, mostly one of the same warp; false when none is ready.
bool Block::choose() {
  constexpr unsigned stay = 64;
  if (ready_count_ == 0) return false;
  if (ready_[warp_].empty()) static_cast<void>(release_warp(warp_));
  if (random_() % stay == 0) warp_ = random_() % ready_.size();
  while (ready_[warp_].empty()) warp_ = (warp_ + 1) % ready_.size();
  std::vector<std::size_t>& threads = ready_[warp_];
  std::swap(threads[random_() % threads.size()], threads.back());
  next_ = threads.back();
  threads.pop_back();
  --ready_count_;
  return true;
}

void Block::resume(std::size_t thread) {
  enter(thread);
  change(scheduler_, threads_[thread].fiber->place);
}

/// True if the exchange that `waiting` has reached names a thread that has not.
bool Block::misses_thread(std::size_t first, const Thread& waiting) const {
  for (std::size_t lane = 0; lane < warp_threads; ++lane) {
    if ((waiting.lanes >> lane & 1U) == 0) continue;
    const std::size_t t = first + lane;
    if (t < threads_.size() && threads_[t].state == State::in_exchange &&
        threads_[t].lanes == waiting.lanes && threads_[t].at.line() == waiting.at.line()) {
      continue;
    }
    return true;
  }
  return false;
}

/// Lets a warp go on if all threads that an exchange names have reached it.
Block::Exchange Block::release_warp(std::size_t warp) {
  const std::size_t first = warp * warp_threads;
  const std::span threads = std::span{threads_}.subspan(first).first(
      std::min<std::size_t>(warp_threads, threads_.size() - first));
  const auto found = std::ranges::find(threads, State::in_exchange, &Thread::state);
  if (found == threads.end()) return Exchange::none;
  const Thread waiting = *found;
  if (misses_thread(first, waiting)) return Exchange::waits;
  for (std::size_t lane = 0; lane < threads.size(); ++lane) {
    if ((waiting.lanes >> lane & 1U) == 0) continue;
    seen_[first + lane] = threads[lane].value;
    release(first + lane);
  }
  return Exchange::done;
}

/// The same for all warps, when nobody else can run: a thread that is missing is a failure.
bool Block::release_warps() {
  bool any = false;
  for (std::size_t warp = 0; warp < ready_.size(); ++warp) {
    const Exchange exchange = release_warp(warp);
    if (exchange == Exchange::done) any = true;
    if (exchange != Exchange::waits) continue;
    fail("warp " + std::to_string(warp) + ": an exchange that not all threads reach");
    return false;
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
    if (!next_ && !choose()) {
      if (!release_warps() && !release_barrier()) return;
      continue;
    }
    if (threads_[*next_].fiber == nullptr) {
      start_fiber();
      continue;
    }
    const std::size_t thread = *std::exchange(next_, std::nullopt);
    resume(thread);
    const bool only_looks = threads_[thread].state == State::ready;
    const auto now = std::chrono::steady_clock::now();
    if (!only_looks) last_change = now;
    if (only_looks) std::this_thread::yield();
    if (now - last_change > patience) return fail("a thread waits for ever");
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
