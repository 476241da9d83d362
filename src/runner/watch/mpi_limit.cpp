// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/mpi_limit.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "base/error.hpp"
#include "base/log.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

constexpr units::Seconds for_launcher{2};  // to end the other processes when one has ended
constexpr timespec between_looks{.tv_sec = 0, .tv_nsec = 10'000'000};

}  // namespace

void MpiLimit::starts() { watch("started"); }

void MpiLimit::ends() { watch("ended"); }

void MpiLimit::watch(std::string_view what) {
  over_ = false;
  thread_ = std::thread{[this, what] {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
    const units::Seconds limit = is_first_ ? timeout_ : timeout_ + for_launcher;
    const auto begin = std::chrono::steady_clock::now();
    while (!over_) {
      constexpr int by_signal = 128;
      const int signal = sigtimedwait(&signals, nullptr, &between_looks);
      if (signal > 0) std::_Exit(by_signal + signal);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (!(timeout_.value() > 0) || waited.count() < limit.value()) continue;
      base::warn_within(fmt::format(
          "isoscale: hang: MPI has not {} within {}: some rank of the job is not there, or "
          "cannot be reached; check the launcher's hosts, or give more time with --timeout",
          what, units::format(timeout_)));
      std::_Exit(static_cast<int>(base::ExitCode::hang));
    }
  }};
}

void MpiLimit::is_over() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace isoscale::runner
