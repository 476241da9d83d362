// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace isoscale::analysis {

/// Calls work(0) ... work(count - 1) on as many threads as there are cores, including this one; the
/// calls must not touch the same data. Rethrows the first exception.
inline void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::size_t threads =
      std::min<std::size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto serve = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock{failing};
        if (!failure) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(serve);
    serve();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace isoscale::analysis
