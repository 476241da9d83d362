// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/start_limit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "base/error.hpp"
#include "base/log.hpp"
#include "units/text.hpp"

namespace isoscale::runner {

StartLimit::StartLimit(units::Seconds timeout) {
  if (!(timeout.value() > 0)) return;
  thread_ = std::thread{[this, timeout] {
    std::unique_lock lock{mutex_};
    const std::chrono::duration<double> patience{timeout.value()};
    if (changed_.wait_for(lock, patience, [this] { return over_; })) return;
    base::warn(fmt::format(
        "isoscale: hang: MPI has not started within {}: some rank of the job is not there, or "
        "cannot be reached; look at the launcher's hosts, or give more time with --timeout",
        units::format(timeout)));
    std::_Exit(static_cast<int>(base::ExitCode::hang));
  }};
}

void StartLimit::is_over() {
  {
    const std::scoped_lock lock{mutex_};
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace isoscale::runner
