// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/error.hpp"
#include "results/hdf5/run_files.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

using settings::IfExists;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Output : public RunFileTest {
 protected:
  /// Refuses the path in a sentence that has all of `words`.
  static void expect_no_output(const std::filesystem::path& path, IfExists if_exists,
                               const std::vector<std::string>& words) {
    try {
      check_output(path, if_exists);
      ADD_FAILURE() << path;
    } catch (const base::UsageError& error) {
      for (const std::string& word : words) EXPECT_THAT(error.what(), HasSubstr(word));
    }
  }
};

TEST_F(Output, IsAcceptedWhereItCanBeWrittenAndLeavesNothing) {
  check_output(file(), IfExists::refuse);
  check_output(file(), IfExists::overwrite);
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(Output, RefusesAnExistingFileUnlessForced) {
  put(file(), "precious");
  expect_no_output(file(), IfExists::refuse, {"run.h5 exists already", "--force"});
  check_output(file(), IfExists::overwrite);
  EXPECT_EQ(content(file()), "precious");
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Output, RefusesPartsOfAnEarlierRun) {
  put(directory_.path() / "run.part0003.h5", "precious");
  put(directory_.path() / "run.party.h5", "no part");
  expect_no_output(file(), IfExists::refuse, {"run.part0003.h5"});
  check_output(directory_.path() / "other.h5", IfExists::refuse);
}

TEST_F(Output, RefusesPlacesThatTakeNoFile) {
  const auto folder = directory_.path();
  expect_no_output(folder / "no" / "run.h5", IfExists::refuse,
                   {"no/run.h5", "does not exist; create it"});
  put(file(), "a file");
  std::filesystem::create_symlink("nowhere", folder / "link.h5");
  expect_no_output(file() / "run.h5", IfExists::refuse, {"not a directory"});
  expect_no_output(folder, IfExists::overwrite, {"it is a directory"});
  expect_no_output(folder / "", IfExists::overwrite, {"names no file"});
  expect_no_output("/dev/null", IfExists::overwrite, {"not a regular file"});
  expect_no_output("/proc/run.h5", IfExists::refuse, {"/proc"});
  expect_no_output(folder / (std::string(250, 'x') + ".h5"), IfExists::refuse, {"characters"});
  expect_no_output(folder / "link.h5", IfExists::overwrite, {"leads nowhere"});
}

/// Somebody without rights on other people's files, even when the tests run as root.
class Stranger {
 public:
  Stranger() {
    if (before_ == 0) changed_ = seteuid(nobody) == 0;
  }
  ~Stranger() {
    if (changed_) static_cast<void>(seteuid(before_) == 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

 private:
  static constexpr uid_t nobody = 65534;
  uid_t before_ = geteuid();
  bool changed_ = false;
};

TEST_F(Output, RefusesADirectoryWithoutPermission) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 0555), 0);
  {
    const Stranger stranger;
    expect_no_output(file(), IfExists::refuse, {"Permission denied", "--output"});
  }
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(Output, RefusesToReplaceOtherPeoplesFilesWhereOnlyTheyMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs two users, so root";
  put(file(), "precious");
  ASSERT_EQ(chmod(directory_.path().c_str(), 01777), 0);
  const Stranger stranger;
  expect_no_output(file(), IfExists::overwrite, {"belongs to somebody else"});
}

TEST_F(Output, GoesThroughALink) {
  put(directory_.path() / "real.h5", "old");
  std::filesystem::create_symlink("real.h5", file());
  check_output(file(), IfExists::overwrite);
  new_writer(IfExists::overwrite).commit(samples::point(0));
  EXPECT_TRUE(std::filesystem::is_symlink(file()));
  EXPECT_EQ(read_run(directory_.path() / "real.h5").points.size(), 1U);
}

TEST_F(Output, HasNoFileBeforeTheFirstPoint) {
  {
    const RunWriter writer = new_writer();
    EXPECT_TRUE(directory_.names().empty());
  }
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(Output, KeepsTheOldFileUntilTheFirstPoint) {
  put(file(), "old");
  RunWriter writer{file(), samples::header(), IfExists::overwrite};
  EXPECT_EQ(content(file()), "old");
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, DoesNotReplaceWhatCameIntoBeingMeanwhile) {
  RunWriter writer = new_writer();
  put(file(), "somebody else's");
  EXPECT_THAT([&] { writer.commit(samples::point(0)); },
              ThrowsMessage<base::Error>(AllOf(HasSubstr("run.h5"), HasSubstr("not overwritten"))));
  EXPECT_EQ(content(file()), "somebody else's");
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Output, SurvivesTheLossOfTheName) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  std::filesystem::remove(file());
  writer.commit(samples::point(1));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
}

TEST_F(Output, TakesAPathRelativeToTheWorkingDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  check_output("run.h5", IfExists::refuse);
  RunWriter writer{"run.h5", samples::header(), IfExists::refuse};
  std::filesystem::current_path(before);
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, FindsTooLittleRoomBeforeItChangesAnything) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  const std::string before = content(file());

  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = before.size() + 100'000, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_THAT([&] { writer.commit(samples::point(1)); },
              ThrowsMessage<base::Error>(AllOf(HasSubstr("reserve"), HasSubstr("too large"))));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);

  EXPECT_EQ(content(file()), before);
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
  writer.commit(samples::point(1));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
}

TEST_F(Output, SweepsTemporaryFilesOfDeadProcessesOnly) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const TemporaryFile left{directory_.path()};
    _exit(0);  // as after SIGKILL, nothing is destroyed
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ASSERT_EQ(directory_.names().size(), 1U);
  const TemporaryFile living{directory_.path()};
  put(directory_.path() / ".isoscale-elsewhere-99999999-0.tmp", "of another machine");
  check_output(file(), IfExists::refuse);
  EXPECT_THAT(directory_.names(),
              testing::UnorderedElementsAre(".isoscale-elsewhere-99999999-0.tmp",
                                            living.path().filename().string()));
}

class Parts : public Output {
 protected:
  /// Room for the header and one point, not for two.
  static constexpr units::Bytes one_point{600'000};
};

TEST_F(Parts, ArePointsPastTheLimit) {
  RunWriter writer = new_writer(IfExists::refuse, units::Bytes{1});
  writer.commit(samples::point(0));
  writer.commit(samples::point(12));
  writer.finish(samples::header());
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0000.h5", "run.part0012.h5"));
  const RunData run = read_run(file());
  ASSERT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[1].index, 12);
  EXPECT_EQ(run.points[1].step_times, samples::point(12).step_times);
}

TEST_F(Parts, StandBesideSmallPoints) {
  RunWriter writer = new_writer(IfExists::refuse, one_point);
  writer.commit(samples::point(0));
  writer.commit(samples::point(1, 20000));
  writer.commit(samples::skipped_point(2));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0001.h5"));
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Parts, AreFoundThroughALinkToTheRunFile) {
  const auto links = directory_.path() / "links";
  std::filesystem::create_directory(links);
  std::filesystem::create_symlink("../run.h5", links / "latest.h5");
  new_writer(IfExists::refuse, units::Bytes{1}).commit(samples::point(0));
  EXPECT_EQ(read_run(links / "latest.h5").points.size(), 1U);
  RunWriter::resume(links / "latest.h5", read_run(links / "latest.h5"), {}, units::Bytes{1})
      .commit(samples::point(1));
  EXPECT_EQ(read_run(links / "latest.h5").points.size(), 2U);
  EXPECT_THAT(directory_.names(),
              ElementsAre("links", "run.h5", "run.part0000.h5", "run.part0001.h5"));
}

TEST_F(Parts, OfAReplacedRunGoWithIt) {
  new_writer(IfExists::refuse, units::Bytes{1}).commit(samples::point(5));
  RunData second = samples::header();
  second.id = "another";
  RunWriter writer{file(), second, IfExists::overwrite, units::Bytes{1}};
  EXPECT_EQ(read_run(file()).id, "0123456789abcdef");
  put(directory_.path() / "run.part0007.h5", "of nobody");
  writer.commit(samples::point(6));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0006.h5", "run.part0007.h5"));
  EXPECT_EQ(read_run(file()).id, "another");
}

TEST_F(Parts, ThatAreMissingForeignOrAloneAreRefused) {
  const auto part = directory_.path() / "run.part0000.h5";
  new_writer(IfExists::refuse, units::Bytes{1}).commit(samples::point(0));
  EXPECT_THAT([&] { (void)read_run(part); },
              ThrowsMessage<base::UsageError>(
                  AllOf(HasSubstr("run.part0000.h5"), HasSubstr("only a part of the run run.h5"))));
  const std::string bytes = content(part);
  std::filesystem::remove(part);
  EXPECT_THAT([&] { (void)read_run(file()); },
              ThrowsMessage<base::UsageError>(
                  AllOf(HasSubstr("run.part0000.h5"), HasSubstr("no such file"))));
  RunData other = samples::header();
  other.id = "another";
  RunWriter{directory_.path() / "b.h5", other, IfExists::refuse, units::Bytes{1}}.commit(
      samples::point(0));
  std::filesystem::rename(directory_.path() / "b.part0000.h5", part);
  EXPECT_THAT([&] { (void)read_run(file()); },
              ThrowsMessage<base::UsageError>(HasSubstr("belongs to another run")));
}

}  // namespace
}  // namespace isoscale::results
