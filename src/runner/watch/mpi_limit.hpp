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
/// may hold back by then, end it at once.
class MpiLimit {
 public:
  explicit MpiLimit(units::Seconds timeout) : timeout_(timeout) {}  ///< 0 = none
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
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace isoscale::runner
