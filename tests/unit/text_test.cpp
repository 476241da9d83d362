// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/text.hpp"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::base {
namespace {

TEST(Plural, FollowsTheCount) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "switch"), "2 switches");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(plural(1, "launch"), "launch");
  EXPECT_EQ(counted(std::vector{1}, "rank"), "1 rank");
  EXPECT_EQ(counted(std::vector{1, 2}, "rank"), "1, 2 ranks");
  EXPECT_EQ(counted(std::vector{1, 2, 4, 8, 16}, "rank", 3), "1, 2, 4 and 2 more ranks");
}

TEST(Listed, CountsThoseThatItLeavesOut) {
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(listed(std::vector<std::string>{}), "");
  EXPECT_EQ(listed(names), "a, b, c");
  EXPECT_EQ(listed(names, 3), "a, b, c");
  EXPECT_EQ(listed(names, 1), "a and 2 more");
}

TEST(Ranges, AreShort) {
  EXPECT_EQ(ranges_text(std::vector{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(ranges_text(std::vector{3, 11, 19, 27, 28}), "3-27 by 8, 28");
  EXPECT_EQ(ranges_text(std::vector{0, 8, 9, 10}), "0, 8-10");
  EXPECT_EQ(ranges_text(std::vector<int>{}), "");
}

TEST(Printable, KeepsTextAndEscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain text, 100%"), "plain text, 100%");
  EXPECT_EQ(printable("\u00fcber \u65e5\u672c \U0001F600"), "\u00fcber \u65e5\u672c \U0001F600");
  EXPECT_EQ(printable("\x1b[31m\n\t\x7f"), "\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view{"a\0b", 3}), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m"), "\\u{9b}31m");
  EXPECT_EQ(printable("abc\u202edef"), "abc\\u{202e}def");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // '/' in two bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("\u00fc\u00fc\u00fc", 2), "\u00fc\u00fc...");
  EXPECT_EQ(printable(std::string(1'000'000, 'x')), fmt::format("{}...", std::string(80, 'x')));
  EXPECT_EQ(quoted("x"), "'x'");
}

TEST(IsPlain, AgreesWithPrintable) {
  EXPECT_TRUE(is_plain(""));
  EXPECT_TRUE(is_plain("a b \u00fc"));
  EXPECT_FALSE(is_plain("a\nb"));
  EXPECT_FALSE(is_plain(std::string_view{"a\0b", 3}));
  EXPECT_FALSE(is_plain("\xff"));
  EXPECT_FALSE(is_plain("\u009b"));
}

constexpr std::array<std::string_view, 4> names{"workload", "model", "dtype", "max-time"};

TEST(NearestName, FindsTypingErrors) {
  EXPECT_EQ(nearest_name("modle", names), "model");
  EXPECT_EQ(nearest_name("MODEL", names), "model");
  EXPECT_EQ(nearest_name("maxtime", names), "max-time");
  EXPECT_EQ(nearest_name("workloads", names), "workload");
  EXPECT_EQ(nearest_name("tpye", names), "dtype");
}

TEST(NearestName, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("", names), std::nullopt);
  EXPECT_EQ(nearest_name("zzzzzzzzz", names), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'm'), names), std::nullopt);
  EXPECT_EQ(nearest_name("model", {}), std::nullopt);
  constexpr std::array<std::string_view, 2> axes{"tp", "dp"};
  EXPECT_EQ(nearest_name("xy", axes), std::nullopt);
}

TEST(NearestName, PrefersTheFirstOfEquals) {
  constexpr std::array<std::string_view, 3> equals{"pp", "tp", "dp"};
  EXPECT_EQ(nearest_name("xp", equals), "pp");
}

TEST(NearestName, TakesTheBeginningOfAName) {
  constexpr std::array<std::string_view, 3> systems{"b200", "gh200", "h100-ndr"};
  EXPECT_EQ(nearest_name("h100", systems), "h100-ndr");
  EXPECT_EQ(nearest_name("h20", systems), "b200");
}

TEST(DidYouMean, IsAHalfSentence) {
  EXPECT_EQ(did_you_mean("modle", names), "; did you mean 'model'?");
  EXPECT_EQ(did_you_mean("zzzzzzzzz", names), "");
}

}  // namespace
}  // namespace isoscale::base
