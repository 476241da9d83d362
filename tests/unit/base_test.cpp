// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/blake2b.hpp"
#include "base/error.hpp"
#include "base/folder_entries.hpp"
#include "base/handle.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "base/warn.hpp"
#include "matchers.hpp"

namespace isoscale::base {
namespace {

TEST(Error, CarriesMessageSourceAndExitCode) {
  const auto line = __LINE__ + 1;
  const Error error{"the disk is full"};
  EXPECT_STREQ(error.what(), "the disk is full");
  EXPECT_EQ(error.where().line(), static_cast<unsigned>(line));
  EXPECT_TRUE(std::string_view{error.where().file_name()}.ends_with("base_test.cpp"));
  EXPECT_EQ(error.exit_code(), ExitCode::failed);
  const UsageError usage{"unknown option"};
  EXPECT_EQ(static_cast<int>(static_cast<const Error&>(usage).exit_code()), 2);
}

TEST(Log, WaitsOnlySoLongForAPipeThatIsFull) {
  testing::internal::CaptureStderr();
  warn_within(std::string(100'000, 'x'), std::chrono::milliseconds{0});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), std::string(100'000, 'x') + "\n");

  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const Descriptor from{ends[0]};
  Descriptor into{ends[1]};
  const Descriptor before{dup(STDERR_FILENO)};
  dup2(into.get(), STDERR_FILENO);
  const std::string line(20'000, 'x');
  for (int written = 0; written < 10; ++written) warn_within(line, std::chrono::milliseconds{1});
  dup2(before.get(), STDERR_FILENO);
  into.reset();
  std::string text(10 * (line.size() + 1), '\0');
  text.resize(static_cast<std::size_t>(read(from.get(), text.data(), text.size())));
  EXPECT_TRUE(text.starts_with(line + "\n" + line));
  EXPECT_LT(text.size(), 10 * line.size());
}

TEST(Folder, HasItsEntriesInOrder) {
  const std::filesystem::path folder = testing::TempDir() + fmt::format("isoscale-{}", getpid());
  std::filesystem::create_directories(folder / "part2");
  std::ofstream{folder / "part1"} << "text";
  std::ofstream{folder / "other"} << "text";
  EXPECT_THAT(entries_of(folder),
              ElementsAre(folder / "other", folder / "part1", folder / "part2"));
  EXPECT_THAT(entries_of(folder, "part"), ElementsAre(folder / "part1", folder / "part2"));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(entries_of(folder), IsEmpty());
}

std::vector<int> freed;  ///< the handles that were freed, in order
struct IntTraits {
  using type = int;
  static int null() { return -1; }
  static void free(int value) noexcept { freed.push_back(value); }
};
using IntHandle = Handle<IntTraits>;
static_assert(!std::is_copy_constructible_v<IntHandle> && !std::is_copy_assignable_v<IntHandle>);
static_assert(std::is_nothrow_move_constructible_v<IntHandle>);

TEST(HandleTest, FreesOnceAlsoAfterMovesAndResetsAndNeverNull) {
  {
    EXPECT_FALSE(IntHandle{});
    IntHandle first{1};
    EXPECT_TRUE(first);
    IntHandle second{std::move(first)}, third{3}, fourth{4};
    EXPECT_EQ(second.get(), 1);
    third = std::move(second);
    EXPECT_THAT(freed, ElementsAre(3));
    auto& alias = third;
    third = std::move(alias);
    EXPECT_EQ(third.get(), 1);
    EXPECT_EQ(fourth.release(), 4);
    EXPECT_FALSE(fourth);
    fourth.reset(5);
    fourth.reset(6);
    EXPECT_THAT(freed, ElementsAre(3, 5));
  }
  EXPECT_THAT(freed, ElementsAre(3, 5, 6, 1));
}

TEST(Lists, AreCountedAndShort) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(2, "switch"), "2 switches");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(plural(1, "launch"), "launch");
  EXPECT_EQ(counted(std::vector{1}, "rank"), "1 rank");
  EXPECT_EQ(counted(std::vector{1, 2}, "rank"), "1, 2 ranks");
  EXPECT_EQ(counted(std::vector{1, 2, 4, 8, 16}, "rank", 3), "1, 2, 4 and 2 more ranks");
  const std::vector<std::string> names{"a", "b", "c"};
  EXPECT_EQ(listed(std::vector<std::string>{}), "");
  EXPECT_EQ(listed(names), "a, b, c");
  EXPECT_EQ(listed(names, 3), "a, b, c");
  EXPECT_EQ(listed(names, 1), "a and 2 more");
  EXPECT_EQ(ranges_text(std::vector{0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
  EXPECT_EQ(ranges_text(std::vector{3, 11, 19, 27, 28}), "3-27 by 8, 28");
  EXPECT_EQ(ranges_text(std::vector{0, 8, 9, 10}), "0, 8-10");
  EXPECT_EQ(ranges_text(std::vector{0, 8, 9, 10, 20, 21}, 2), "0, 8-10 and 2 more");
  EXPECT_EQ(ranges_text(std::vector<int>{}), "");
}

TEST(Printable, EscapesWhatATerminalWouldObeyAndCutsBetweenCharacters) {
  // Among them a character cut short, '/' in two bytes, half a surrogate pair, and beyond U+10FFFF.
  const std::vector<std::pair<std::string, std::string>> cases{
      {"\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f"},
      {std::string{"a\0b", 3}, "a\\x00b"},
      {"\u009b31m", "\\u{9b}31m"},
      {"abc\u202edef", "abc\\u{202e}def"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc3", "\\xc3"},
      {"\xc0\xaf", "\\xc0\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}};
  for (const auto& [text, escaped] : cases) {
    EXPECT_EQ(printable(text), escaped);
    EXPECT_FALSE(is_plain(text)) << escaped;
  }
  for (const char* text : {"", "plain text, 100%", "\u00fcber \u65e5\u672c \U0001F600"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_plain(text)) << text;
  }
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("\u00fc\u00fc\u00fc", 2), "\u00fc\u00fc...");
  EXPECT_EQ(printable(std::string(1'000'000, 'x')), fmt::format("{}...", std::string(80, 'x')));
  EXPECT_EQ(quoted("x"), "'x'");
}

constexpr std::array<std::string_view, 4> names{"workload", "model", "dtype", "max-time"};
constexpr std::array<std::string_view, 3> axes{"pp", "tp", "dp"};
constexpr std::array<std::string_view, 3> systems{"b200", "gh200", "h100-ndr"};

TEST(NearestName, FindsTypingErrorsTheFirstOfEqualsAndBeginnings) {
  for (const char* const wrong : {"modle", "MODEL"}) EXPECT_EQ(nearest_name(wrong, names), "model");
  EXPECT_EQ(nearest_name("workloads", names), "workload");
  EXPECT_EQ(nearest_name("tpye", names), "dtype");
  EXPECT_EQ(nearest_name("xp", axes), "pp");
  for (const char* const begun : {"h100", "h10"}) {
    EXPECT_EQ(nearest_name(begun, systems), "h100-ndr");
  }
  EXPECT_EQ(nearest_name("h20", systems), "b200");
  EXPECT_EQ(did_you_mean("modle", names), "; did you mean 'model'?");
  EXPECT_EQ(did_you_mean("zzzzzzzzz", names), "");
  for (const std::string& far : {std::string{}, std::string(1'000'000, 'm')}) {
    EXPECT_EQ(nearest_name(far, names), std::nullopt);
  }
  EXPECT_EQ(nearest_name("model", {}), std::nullopt);
  EXPECT_EQ(nearest_name("xy", axes), std::nullopt);
}

TEST(ParallelFor, ThrowsWhatTheFirstThrew) {
  std::vector<int> done(100, 0);
  parallel_for(done.size(), [&](std::size_t i) { done[i] = 1; });
  EXPECT_EQ(std::ranges::count(done, 1), 100);
  const auto fail_at_sevens = [](std::size_t i) {
    if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
  };
  EXPECT_THAT([&] { parallel_for(done.size(), fail_at_sevens); },
              testing::ThrowsMessage<std::runtime_error>("7"));
}

TEST(ParallelInOrder, BeginsTheSameItemsOnAnyNumberOfThreads) {
  for (const std::size_t ahead : {1U, 3U, 8U, 100U}) {
    std::vector<int> value(60, 0);
    std::size_t asked = 0;
    const std::size_t begun = parallel_in_order(
        value.size(), ahead,
        [&](std::size_t item, std::size_t ended) {
          EXPECT_EQ(item, asked++);
          EXPECT_EQ(ended, item + 1 > ahead ? item + 1 - ahead : 0);
          return std::accumulate(value.begin(), value.begin() + static_cast<long>(ended), 0) < 20;
        },
        [&](std::size_t item) { value[item] = 1; });
    EXPECT_EQ(begun, std::min(value.size(), 19 + ahead));
    EXPECT_EQ(std::ranges::count(value, 1), static_cast<long>(begun));
  }
  const auto always = [](auto, auto) { return true; };
  const auto fail_at_three = [](std::size_t item) {
    if (item == 3) throw std::runtime_error("three");
  };
  EXPECT_EQ(parallel_in_order(0, 2, always, [](auto) {}), 0U);
  EXPECT_THROW(parallel_in_order(5, 2, always, fail_at_three), std::runtime_error);
}

std::string made(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + 3);
  return bytes;
}

/// Python's hashlib.blake2b(..., digest_size=32), around the ends of blocks.
TEST(Blake2b, GivesWhatOthersGiveInPiecesOfAnySize) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
      {"abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"},
      {made(1), "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
      {made(127), "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
      {made(128), "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
      {made(129), "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
      {made(255), "f2d64a40e9412a3414161ff6250075225418fd7c271c1123e162e1bca0de9f93"},
      {made(256), "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
      {made(257), "4ce481b24d387422d2bc2baa03d1afd55a1327939ff537c71eb9b38709268649"},
      {made(1000003), "26eac2928cd76a2d1c4560d812b2127f037c431611d5556a761e5f8445ad10e4"}};
  for (const auto& [bytes, digest] : cases) {
    for (const std::size_t piece : {1U, 64U, 127U, 128U, 129U, 4096U}) {
      const std::string_view whole = bytes;
      Blake2b found;
      for (std::size_t at = 0; at < whole.size(); at += piece) found.add(whole.substr(at, piece));
      EXPECT_EQ(found.finish(), digest) << whole.size() << ' ' << piece;
    }
  }
}

}  // namespace
}  // namespace isoscale::base
