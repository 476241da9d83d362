// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "results_fixture.hpp"

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

/// The file is replaced as where a file system has no locks, or somebody copies a file over ours.
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

/// How points are spread over files.
struct Layout {
  std::string name;
  units::Bytes part_limit;
  bool has_parts = false;
};
void PrintTo(const Layout& value, std::ostream* out) { *out << value.name; }

class Resumed : public RunFileTest, public testing::WithParamInterface<Layout> {
 protected:
  /// A run that ended with points 0, 1 and 3.
  void write_earlier() const {
    RunWriter writer = new_writer(IfExists::refuse, GetParam().part_limit);
    for (const int index : {0, 1, 3}) writer.commit(samples::point(index));
    RunData end = samples::header();
    end.complete = true;
    end.ended = "2026-01-02T03:05:00Z";
    writer.finish(end);
  }
  [[nodiscard]] RunWriter resume(const std::set<int>& again) const {
    RunData earlier = read_run(file());
    earlier.warnings.emplace_back("resumed");
    return RunWriter::resume(file(), earlier, again, GetParam().part_limit);
  }
  [[nodiscard]] std::size_t parts() const { return directory_.names().size() - 1; }
};

TEST_P(Resumed, IsPartialWithoutThePointsThatComeAgain) {
  write_earlier();
  EXPECT_EQ(parts(), GetParam().has_parts ? 3U : 0U);
  const RunWriter writer = resume({1, 2});
  const RunData run = read_run(file());
  EXPECT_FALSE(run.complete);
  EXPECT_EQ(run.ended, "");
  EXPECT_EQ(run.warnings.back(), "resumed");
  EXPECT_THAT(indices(run), ElementsAre(0, 3));
}

TEST_P(Resumed, EndsAsIfItHadNotBeenInterrupted) {
  write_earlier();
  const RunData before = read_run(file());
  RunWriter writer = resume({1, 2});
  writer.commit(samples::point(2, 7));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 2, 3));
  writer.commit(samples::point(1, 5));
  EXPECT_THROW(writer.commit(samples::point(3)), base::Error);
  RunData end = samples::header();
  end.complete = true;
  writer.finish(end);
  const RunData run = read_run(file());
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.id, before.id);
  EXPECT_THAT(indices(run), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(run.points[0].step_times, before.points[0].step_times);
  EXPECT_EQ(run.points[1].step_times.size(), samples::point(1, 5).step_times.size());
  EXPECT_EQ(parts(), GetParam().has_parts ? 4U : 0U);
}

TEST_P(Resumed, RemovesOldPartsWhenTheNewOnesAreNamed) {
  write_earlier();
  const std::size_t before = parts();
  RunWriter writer = resume({1, 2, 3});
  EXPECT_EQ(parts(), before);
  writer.commit(samples::point(1));
  EXPECT_EQ(parts(), before);
  writer.finish(samples::header());  // point 3 was not measured again
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1));
  EXPECT_EQ(parts(), GetParam().has_parts ? 2U : 0U);
}

TEST_P(Resumed, RemovesAPartThatAKilledLaunchDidNotName) {
  write_earlier();
  const auto part = directory_.path() / "run.part0002.h5";
  {
    RunWriter other{directory_.path() / "other.h5", samples::header(), IfExists::refuse,
                    units::Bytes{1}};
    other.commit(samples::point(2));
  }
  std::filesystem::rename(directory_.path() / "other.part0002.h5", part);
  std::filesystem::remove(directory_.path() / "other.h5");
  RunWriter writer = resume({2});
  EXPECT_FALSE(std::filesystem::exists(part));
  writer.commit(samples::point(2));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
}

TEST_P(Resumed, KeepsWhatOnlyHasTheNameOfAPart) {
  write_earlier();
  std::ofstream{directory_.path() / "run.part0002.h5"} << "keep";
  RunData other = samples::header();
  other.id = "another";
  RunWriter{directory_.path() / "b.h5", other, IfExists::refuse, units::Bytes{1}}.commit(
      samples::point(7));
  std::filesystem::rename(directory_.path() / "b.part0007.h5",
                          directory_.path() / "run.part0007.h5");
  std::filesystem::remove(directory_.path() / "b.h5");
  testing::internal::CaptureStderr();
  RunWriter writer = resume({2});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(testing::HasSubstr("run.part0002.h5"), testing::HasSubstr("run.part0007.h5"),
                     testing::HasSubstr("left as it is")));
  writer.commit(samples::point(2));
  writer.finish(samples::header());
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(std::filesystem::file_size(directory_.path() / "run.part0002.h5"), 4U);
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "run.part0007.h5"));
  EXPECT_EQ(std::filesystem::exists(directory_.path() / "run.part0002-2.h5"), GetParam().has_parts);
}

TEST_P(Resumed, NeedsTheFile) {
  EXPECT_THROW((void)RunWriter::resume(file(), samples::header(), {}, GetParam().part_limit),
               base::Error);
  EXPECT_TRUE(directory_.names().empty());
}

INSTANTIATE_TEST_SUITE_P(Writers, Resumed,
                         testing::Values(Layout{"OneFile", default_part_limit, false},
                                         Layout{"WithParts", units::Bytes{1}, true}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace isoscale::results
