// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "units/quantity.hpp"

namespace isoscale::runner {

/// Ends the process with a sentence when MPI has not started in time: some rank of the job is not
/// there, and nothing else can tell.
class StartLimit {
 public:
  explicit StartLimit(units::Seconds timeout);  ///< 0 = none
  ~StartLimit() { is_over(); }
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;

  void is_over();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace isoscale::runner
