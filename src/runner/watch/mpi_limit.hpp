// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <string_view>
#include <thread>

#include "units/quantity.hpp"

namespace isoscale::runner {

/// While MPI starts and while it ends nothing else watches. Ends the process with a sentence when
/// that takes too long: some rank of the job is not there. SIGTERM and SIGINT, which the process
/// may hold back by then, end it at once. One process of the launch ends first, and the launcher
/// the others: Open MPI 4.1's mpirun may crash or hang itself where all of them leave at once.
class MpiLimit {
 public:
  /// `timeout`: 0 = none. `is_first`: whether this process is the one that ends first.
  explicit MpiLimit(units::Seconds timeout, bool is_first = true)
      : timeout_(timeout), is_first_(is_first) {}
  ~MpiLimit() { is_over(); }
  MpiLimit(const MpiLimit&) = delete;
  MpiLimit& operator=(const MpiLimit&) = delete;

  void starts();
  /// After starts() and is_over().
  void ends();
  void is_over();

 private:
  void watch(std::string_view what);

  units::Seconds timeout_;
  bool is_first_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace isoscale::runner
