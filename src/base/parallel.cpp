// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace isoscale::base {
namespace {

/// Returns the number of logical CPUs that this process may run on; 1 if it is not known.
std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
}

/// Hands out items to threads in order.
class Turns {
 public:
  Turns(std::size_t items, std::size_t ahead,
        const std::function<bool(std::size_t, std::size_t)>& begins)
      : ahead_(ahead), begins_(begins), has_ended_(items) {}

  /// Waits until the next item may begin, and returns it; absent if no further item should begin.
  std::optional<std::size_t> next() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return is_over() || ended_ + ahead_ > next_; });
    if (is_over()) return std::nullopt;
    denied_ = !begins_(next_, next_ + 1 > ahead_ ? next_ + 1 - ahead_ : 0);
    if (!denied_) return next_++;
    changed_.notify_all();
    return std::nullopt;
  }
  void end(std::size_t item, bool failed) {
    const std::lock_guard lock{mutex_};
    has_ended_[item] = true;
    denied_ = denied_ || failed;
    while (ended_ < has_ended_.size() && has_ended_[ended_]) ++ended_;
    changed_.notify_all();
  }
  [[nodiscard]] std::size_t begun() const { return next_; }  ///< valid once all threads ended

 private:
  [[nodiscard]] bool is_over() const { return denied_ || next_ == has_ended_.size(); }

  std::size_t ahead_;
  const std::function<bool(std::size_t, std::size_t)>& begins_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> has_ended_;
  std::size_t next_ = 0, ended_ = 0;  ///< items before `ended_` have all ended
  bool denied_ = false;
};

}  // namespace

void parallel_for(std::size_t items, const std::function<void(std::size_t)>& work) {
  parallel_in_order(
      items, items, [](std::size_t, std::size_t) { return true; }, work);
}

std::size_t parallel_in_order(std::size_t items, std::size_t ahead,
                              const std::function<bool(std::size_t, std::size_t)>& begins,
                              const std::function<void(std::size_t)>& work) {
  Turns turns{items, ahead, begins};
  std::vector<std::exception_ptr> thrown(items);
  const auto take = [&] {
    while (const std::optional<std::size_t> item = turns.next()) {
      try {
        work(*item);
      } catch (...) {  // rethrown to the caller
        thrown[*item] = std::current_exception();
      }
      turns.end(*item, thrown[*item] != nullptr);
    }
  };
  const std::size_t threads = std::min({usable_cores(), items, ahead});
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(take);
    take();
  }
  for (const std::exception_ptr& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
  return turns.begun();
}

}  // namespace isoscale::base
