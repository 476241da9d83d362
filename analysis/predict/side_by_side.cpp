// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/side_by_side.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/workers.hpp"

namespace isoscale::analysis {

void side_by_side(std::size_t items, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(items);
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t item = next++; item < items; item = next++) {
      try {
        work(item);
      } catch (...) {  // carried to the caller
        thrown[item] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t others = std::min(base::usable_cores(), items);
    for (std::size_t i = 1; i < others; ++i) threads.emplace_back(take);
    take();
  }
  for (const std::exception_ptr& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace isoscale::analysis
