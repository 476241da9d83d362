// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include "base/error.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

using settings::IfExists;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Who may write a run file.
class Owner : public RunFileTest {
 protected:
  [[nodiscard]] RunWriter resume() const { return RunWriter::resume(file(), read_run(file()), {}); }
  void write_one_point() const { new_writer().commit(samples::point(0)); }
  [[nodiscard]] std::set<int> committed() const {
    const std::vector<int> found = indices(read_run(file()));
    return {found.begin(), found.end()};
  }
};

TEST_F(Owner, IsTheLaunchThatWritesUntilItEnds) {
  {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    for (const int index : {1, 2}) {
      EXPECT_THAT([&] { (void)resume(); },
                  ThrowsMessage<base::UsageError>(
                      AllOf(HasSubstr("run.h5"), HasSubstr("being written by another launch"))));
      EXPECT_THAT([&] { (void)new_writer(IfExists::overwrite); },
                  ThrowsMessage<base::UsageError>(HasSubstr("being written by another launch")));
      writer.commit(samples::point(index));
    }
    writer.finish(samples::header());
  }
  EXPECT_EQ(committed(), (std::set{0, 1, 2}));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
  resume().commit(samples::point(3));
  EXPECT_EQ(committed(), (std::set{0, 1, 2, 3}));
}

TEST_F(Owner, IsOneOfTwoThatResume) {
  write_one_point();
  RunWriter first = resume();
  EXPECT_THROW((void)resume(), base::UsageError);
  first.commit(samples::point(1));
  EXPECT_EQ(committed(), (std::set{0, 1}));
}

TEST_F(Owner, IsOneOfTwoThatReplace) {
  write_one_point();
  RunWriter first = new_writer(IfExists::overwrite);
  EXPECT_THROW((void)new_writer(IfExists::overwrite), base::UsageError);
  first.commit(samples::point(5));
  EXPECT_THROW((void)new_writer(IfExists::overwrite), base::UsageError);
  EXPECT_EQ(committed(), std::set{5});
}

TEST_F(Owner, IsTheFirstOfTwoThatBeginWithoutAFile) {
  RunWriter first = new_writer(IfExists::overwrite);
  RunWriter second = new_writer(IfExists::overwrite);
  first.commit(samples::point(0));
  EXPECT_THAT([&] { second.commit(samples::point(1)); },
              ThrowsMessage<base::Error>(
                  AllOf(HasSubstr("another launch has written"), HasSubstr("not overwritten"))));
  EXPECT_EQ(committed(), std::set{0});
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Owner, OfAnotherProcessIsSeenAndIsGoneWhenThatIsKilled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    if (write(ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char written = 0;
  ASSERT_EQ(read(ends[0], &written, 1), 1);
  EXPECT_THROW((void)resume(), base::UsageError);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  resume().commit(samples::point(1));
  EXPECT_EQ(committed(), (std::set{0, 1}));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

/// As where a file system has no locks, or somebody copies a file over ours.
TEST_F(Owner, LeavesAloneWhatTookItsName) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  std::ofstream{directory_.path() / "other"} << "somebody else's";
  std::filesystem::rename(directory_.path() / "other", file());
  EXPECT_THAT([&] { writer.commit(samples::point(1)); },
              ThrowsMessage<base::Error>(AllOf(HasSubstr("run.h5"), HasSubstr("not overwritten"))));
  EXPECT_THROW(writer.finish(samples::header()), base::Error);
  EXPECT_EQ(std::filesystem::file_size(file()), std::string_view{"somebody else's"}.size());
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Owner, LeavesAReadOnlyFileAlone) {
  write_one_point();
  const auto before = std::filesystem::last_write_time(file());
  std::filesystem::permissions(file(), std::filesystem::perms{0444});
  EXPECT_THAT([&] { (void)resume(); },
              ThrowsMessage<base::UsageError>(AllOf(HasSubstr("run.h5"), HasSubstr("read-only"))));
  EXPECT_EQ(std::filesystem::last_write_time(file()), before);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{0444});
}

TEST_F(Owner, KeepsThePermissionsOfWhatItReplaces) {
  write_one_point();
  for (const unsigned mode : {0600U, 0664U}) {
    std::filesystem::permissions(file(), std::filesystem::perms{mode});
    RunWriter writer = mode == 0600U ? resume() : new_writer(IfExists::overwrite);
    writer.commit(samples::point(4));
    EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{mode});
    writer.finish(samples::header());
    EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{mode});
  }
}

TEST_F(Owner, ResumesOnlyWhatItHasRead) {
  write_one_point();
  const RunData read = read_run(file());
  resume().commit(samples::point(1));
  EXPECT_THAT([&] { (void)RunWriter::resume(file(), read, {}); },
              ThrowsMessage<base::UsageError>(HasSubstr("changed by another launch")));
  const RunData again = read_run(file());
  resume().finish([] {
    RunData end = samples::header();
    end.ended = "2026-01-02T03:05:00Z";
    return end;
  }());
  EXPECT_THROW((void)RunWriter::resume(file(), again, {}), base::UsageError);
  EXPECT_EQ(committed(), (std::set{0, 1}));
}

}  // namespace
}  // namespace isoscale::results
