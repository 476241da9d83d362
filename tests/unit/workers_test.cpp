// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/forked_work.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <string>

namespace isoscale::base {
namespace {

using testing::ElementsAre;

TEST(Workers, AnswersComeInTheOrderOfTheItems) {
  const auto square = [](std::size_t item) { return std::to_string(item * item); };
  for (const std::size_t processes : {0U, 1U, 2U, 3U, 8U}) {
    const std::vector<Answer> answers = answer_apart(7, processes, square);
    std::vector<std::string> texts;
    for (const Answer& answer : answers) texts.push_back(answer.text.value_or("none"));
    EXPECT_THAT(texts, ElementsAre("0", "1", "4", "9", "16", "25", "36")) << processes;
  }
  EXPECT_TRUE(answer_apart(0, 4, square).empty());
}

TEST(Workers, AreOtherProcesses) {
  std::set<std::string> seen;
  for (const Answer& answer :
       answer_apart(6, 3, [](std::size_t /*item*/) { return std::to_string(getpid()); })) {
    seen.insert(answer.text.value());
  }
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_FALSE(seen.contains(std::to_string(getpid())));
}

/// More than a pipe holds, with every byte that there is.
TEST(Workers, AnswersMayBeLongOrEmpty) {
  const auto text_of = [](std::size_t item) {
    std::string text(item * 1'000'003, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + item);
    return text;
  };
  const std::vector<Answer> answers = answer_apart(5, 2, text_of);
  for (std::size_t item = 0; item < answers.size(); ++item) {
    EXPECT_TRUE(answers[item].text == text_of(item)) << item;
  }
}

TEST(Workers, OneThatEndsCostsOnlyTheItemThatItWasAt) {
  const std::vector<Answer> answers = answer_apart(12, 2, [](std::size_t item) -> std::string {
    if (item == 0 || item == 4 || item == 11) (void)raise(SIGKILL);
    if (item == 5) _exit(3);
    return "ok";
  });
  for (std::size_t item = 0; item < answers.size(); ++item) {
    const std::string ended = item == 0 || item == 4 || item == 11 ? "signal 9"
                              : item == 5                          ? "exit status 3"
                                                                   : "";
    EXPECT_EQ(answers[item].ended, ended) << item;
    EXPECT_EQ(answers[item].text.has_value(), ended.empty()) << item;
  }
}

TEST(Workers, AllMayEnd) {
  for (const Answer& answer : answer_apart(5, 2, [](std::size_t /*item*/) -> std::string {
         (void)raise(SIGKILL);
         return "";
       })) {
    EXPECT_EQ(answer.ended, "signal 9");
  }
}

TEST(Workers, NoneIsLeftBehind) {
  (void)answer_apart(6, 3, [](std::size_t item) -> std::string {
    if (item == 2) (void)raise(SIGKILL);
    return "";
  });
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace isoscale::base
