// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/folder_entries.hpp"
#include "base/handle.hpp"
#include "base/log.hpp"

namespace isoscale::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

TEST(BuildInfo, NamesVersionCommitCompilerAndBuildType) {
  EXPECT_EQ(build_info().version, ISOSCALE_EXPECTED_VERSION);
  EXPECT_EQ(build_info().compiler, ISOSCALE_EXPECTED_COMPILER);
  EXPECT_EQ(build_info().build_type, ISOSCALE_EXPECTED_BUILD_TYPE);
  EXPECT_THAT(std::string{build_info().git_hash}, MatchesRegex("unknown|[0-9a-f]{12,40}(-dirty)?"));
}

TEST(Error, CarriesMessageSourceAndExitCode) {
  const auto line = __LINE__ + 1;
  const Error error{"the disk is full"};
  EXPECT_STREQ(error.what(), "the disk is full");
  EXPECT_EQ(error.where().line(), static_cast<unsigned>(line));
  EXPECT_TRUE(std::string_view{error.where().file_name()}.ends_with("base_test.cpp"));
  EXPECT_EQ(error.exit_code(), ExitCode::failed);
}

TEST(Error, UsageErrorsExitWithTwo) {
  try {
    throw UsageError{"unknown option"};
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.exit_code()), 2);
    return;
  }
  FAIL() << "a UsageError is an Error";
}

TEST(Log, WritesOneWholeLineToStandardErrorAndNothingToStandardOutput) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  warn("first line");
  warn("");
  warn(std::string(100'000, 'x'));
  const std::string error = testing::internal::GetCapturedStderr();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(error, "first line\n\n" + std::string(100'000, 'x') + "\n");
}

TEST(Log, WaitsOnlySoLongForAPipeThatIsFull) {
  testing::internal::CaptureStderr();
  warn_within(std::string(100'000, 'x'), std::chrono::milliseconds{0});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), std::string(100'000, 'x') + "\n");

  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  const std::string line(20'000, 'x');
  for (int written = 0; written < 10; ++written) warn_within(line, std::chrono::milliseconds{1});
  dup2(before, STDERR_FILENO);
  close(before);
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = read(ends[0], part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
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

/// Notes which handles were freed, in order.
std::vector<int>& freed() {
  static std::vector<int> list;
  return list;
}
struct IntTraits {
  using type = int;
  static int null() { return -1; }
  static void free(int value) noexcept { freed().push_back(value); }
};
using IntHandle = Handle<IntTraits>;

class HandleTest : public testing::Test {
 protected:
  void SetUp() override { freed().clear(); }
};

TEST_F(HandleTest, FreesOnceAtTheEndOfItsLife) {
  {
    const IntHandle handle{7};
    EXPECT_TRUE(handle);
    EXPECT_EQ(handle.get(), 7);
    EXPECT_THAT(freed(), IsEmpty());
  }
  EXPECT_THAT(freed(), ElementsAre(7));
}

TEST_F(HandleTest, NullIsNeverFreed) {
  {
    const IntHandle handle;
    EXPECT_FALSE(handle);
  }
  EXPECT_THAT(freed(), IsEmpty());
}

TEST_F(HandleTest, MovesTransferOwnership) {
  static_assert(!std::is_copy_constructible_v<IntHandle>);
  static_assert(!std::is_copy_assignable_v<IntHandle>);
  static_assert(std::is_nothrow_move_constructible_v<IntHandle>);
  {
    IntHandle first{1};
    IntHandle second{std::move(first)};
    EXPECT_EQ(second.get(), 1);
    IntHandle third{3};
    third = std::move(second);
    EXPECT_THAT(freed(), ElementsAre(3));
    auto& alias = third;
    third = std::move(alias);
    EXPECT_EQ(third.get(), 1);
  }
  EXPECT_THAT(freed(), ElementsAre(3, 1));
}

TEST_F(HandleTest, ReleaseGivesUpAndResetReplaces) {
  {
    IntHandle handle{1};
    EXPECT_EQ(handle.release(), 1);
    EXPECT_FALSE(handle);
    handle.reset(2);
    handle.reset(3);
    EXPECT_THAT(freed(), ElementsAre(2));
  }
  EXPECT_THAT(freed(), ElementsAre(2, 3));
}

}  // namespace
}  // namespace isoscale::base
