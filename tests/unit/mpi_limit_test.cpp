// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/supervisor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

namespace isoscale::runner {
namespace {

using testing::ExitedWithCode;

void wait() { std::this_thread::sleep_for(std::chrono::seconds{30}); }

/// As standard error; the other end is kept and not read.
void use_full_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK) != 0) _exit(1);
  dup2(ends[1], STDERR_FILENO);
  while (write(STDERR_FILENO, "x", 1) == 1) {
  }
  fcntl(STDERR_FILENO, F_SETFL, 0);  // who writes now waits
}

class MpiLimits : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(MpiLimits, AnMpiThatDoesNotEndEndsTheProcess) {
  EXPECT_EXIT(
      {
        MpiLimit limit{units::Seconds{0.2}};
        limit.starts();
        limit.is_over();
        limit.ends();
        wait();
      },
      ExitedWithCode(4), "isoscale: hang: MPI has not ended within 200 ms");
}

TEST_F(MpiLimits, OtherProcessesOfALaunchLeaveTheirEndToTheLauncherForAWhile) {
  EXPECT_EXIT(
      {
        MpiLimit limit(units::Seconds{0.1}, false);
        limit.ends();
        std::this_thread::sleep_for(std::chrono::seconds{1});
        _exit(7);  // as the launcher would end it
      },
      ExitedWithCode(7), "");
}

TEST_F(MpiLimits, AlsoWhereNobodyReadsStandardError) {
  EXPECT_EXIT(
      {
        use_full_pipe();
        MpiLimit limit{units::Seconds{0.5}};
        limit.starts();
        wait();
      },
      ExitedWithCode(4), "");
}

/// Also of a thread that does not hold signals back, as ThreadSanitizer's own.
bool is_ended_by_sigterm(int status) {
  return ExitedWithCode(128 + SIGTERM)(status) || testing::KilledBySignal(SIGTERM)(status);
}

/// Signals are held back by then.
TEST_F(MpiLimits, ASignalEndsItMeanwhile) {
  EXPECT_EXIT(
      {
        const HeldSignals signals;
        MpiLimit limit{units::Seconds{0}};
        limit.ends();
        kill(getpid(), SIGTERM);
        wait();
      },
      is_ended_by_sigterm, "");
}

/// It lets go of what ends in time.
TEST_F(MpiLimits, IsOverWhenMpiIs) {
  MpiLimit limit{units::Seconds{0.05}};
  limit.starts();
  limit.is_over();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  limit.ends();
  limit.is_over();
}

}  // namespace
}  // namespace isoscale::runner
