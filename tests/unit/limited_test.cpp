// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/forked_work.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <new>
#include <string>
#include <vector>

namespace isoscale::base {
namespace {

using std::chrono::seconds;

constexpr Limits plenty{.memory = units::Bytes{std::uint64_t{1} << 30U},
                        .cpu_time = seconds{20},
                        .wall_time = seconds{60}};

TEST(Limited, GivesTheAnswerOfAnotherProcess) {
  const Answer answer = answer_within(plenty, [] { return std::to_string(getpid()); });
  ASSERT_TRUE(answer.text);
  EXPECT_NE(*answer.text, std::to_string(getpid()));
  EXPECT_EQ(answer.ended, "");
  EXPECT_EQ(answer_within(plenty, [] { return std::string{}; }).text, "");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // none is left behind
  EXPECT_EQ(errno, ECHILD);
}

TEST(Limited, SaysHowItEnded) {
  const Answer killed = answer_within(plenty, []() -> std::string {
    (void)raise(SIGSEGV);
    return "late";
  });
  EXPECT_EQ(killed.text, std::nullopt);
  EXPECT_EQ(killed.ended, "signal 11");
  const Answer left = answer_within(plenty, []() -> std::string { _exit(7); });
  EXPECT_EQ(left.text, std::nullopt);
  EXPECT_EQ(left.ended, "exit status 7");
}

TEST(Limited, EndsWhatTakesTooLong) {
  Limits limits = plenty;
  limits.cpu_time = seconds{1};
  const Answer busy = answer_within(limits, []() -> std::string {
    while (clock() >= 0) {
    }
    return "it ends";
  });
  EXPECT_EQ(busy.text, std::nullopt);
  EXPECT_EQ(busy.ended, "more than 1 s of CPU time");
  limits.wall_time = seconds{1};
  const Answer idle = answer_within(limits, []() -> std::string {
    while (true) pause();
  });
  EXPECT_EQ(idle.ended, "more than 1 s");
}

TEST(Limited, RefusesMoreMemory) {
  const Answer answer = answer_within(plenty, []() -> std::string {
    try {
      const std::vector<char> big(std::size_t{2} << 30U, 'x');
      return std::string{"got "} + big[1000];
    } catch (const std::bad_alloc&) {
      return "none";
    }
  });
  // Sanitizers end the process themselves.
  EXPECT_TRUE(!answer.text || answer.text == "none") << answer.text.value_or(answer.ended);
}

TEST(Limited, CutsOffWhoNeverStopsSpeaking) {
  const Answer answer =
      answer_within(plenty, [] { return std::string(std::size_t{1} << 24U, 'x'); });
  EXPECT_EQ(answer.text, std::nullopt);
  EXPECT_EQ(answer.ended, "an endless answer");
}

}  // namespace
}  // namespace isoscale::base
