// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "results/hdf5/run_files.hpp"
#include "results_fixture.hpp"

/// The tests check where run files may be written, and by whom.
namespace isoscale::results {
namespace {

class Output : public RunFileTest {
 protected:
  static void expect_no_output(const std::filesystem::path& path, Publish how,
                               const std::vector<std::string>& words) {
    expect_error([&] { check_output(path, how); }, words);
  }
};

TEST_F(Output, IsAcceptedWhereItCanBeWrittenAndLeavesNothing) {
  check_output(file(), Publish::only_new);
  check_output(file(), Publish::replace);
  EXPECT_TRUE(directory_.names().empty());
}

TEST_F(Output, RefusesPartsOfAnEarlierRun) {
  put(at("run.part0003.h5"), "precious");
  put(at("run.party.h5"), "no part");
  expect_no_output(file(), Publish::only_new, {"run.part0003.h5"});
  check_output(at("other.h5"), Publish::only_new);
}

TEST_F(Output, RefusesPlacesThatTakeNoFile) {
  put("a file");
  std::filesystem::create_symlink("nowhere", at("link.h5"));
  expect_no_output(at("no/run.h5"), Publish::only_new, {"no/run.h5", "create it"});
  expect_no_output(file() / "run.h5", Publish::only_new, {"not a directory"});
  expect_no_output(directory_.path(), Publish::replace, {"it is a directory"});
  expect_no_output(at(""), Publish::replace, {"names no file"});
  expect_no_output("/dev/null", Publish::replace, {"not a regular file"});
  expect_no_output("/proc/run.h5", Publish::only_new, {"/proc"});
  expect_no_output(at(std::string(250, 'x') + ".h5"), Publish::only_new, {"characters"});
  expect_no_output(at("link.h5"), Publish::replace, {"leads nowhere"});
  expect_error([&] { check_output(at("none/run.h5"), Publish::replace, "resume a copy"); },
               {"cannot write", "resume a copy"});
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
    expect_no_output(file(), Publish::only_new, {"Permission denied", "--output"});
  }
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
}

TEST_F(Output, RefusesToReplaceOtherPeoplesFilesWhereOnlyTheyMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs two users, so root";
  put("precious");
  ASSERT_EQ(chmod(directory_.path().c_str(), 01777), 0);
  const Stranger stranger;
  expect_no_output(file(), Publish::replace, {"belongs to somebody else"});
}

TEST_F(Output, GoesThroughALink) {
  put(at("real.h5"), "old");
  std::filesystem::create_symlink("real.h5", file());
  check_output(file(), Publish::replace);
  write({0});
  EXPECT_TRUE(std::filesystem::is_symlink(file()));
  EXPECT_EQ(read_run(at("real.h5")).points.size(), 1U);
}

TEST_F(Output, HasNoNewFileBeforeTheFirstPoint) {
  {
    const RunWriter writer = new_writer();
    EXPECT_TRUE(directory_.names().empty());
  }
  EXPECT_TRUE(directory_.names().empty());
  put("old");
  RunWriter writer = new_writer(IfExists::overwrite);
  EXPECT_EQ(content(), "old");
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, DoesNotReplaceWhatCameIntoBeingMeanwhile) {
  RunWriter writer = new_writer();
  put("somebody else's");
  expect_error<base::Error>([&] { writer.commit(samples::point(0)); },
                            {"run.h5", "not overwritten"});
  EXPECT_EQ(content(), "somebody else's");
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Output, TakesAPathRelativeToTheWorkingDirectory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  check_output("run.h5", Publish::only_new);
  RunWriter writer{"run.h5", samples::header(), IfExists::refuse};
  std::filesystem::current_path(before);
  writer.commit(samples::point(0));
  EXPECT_EQ(read_run(file()).points.size(), 1U);
}

TEST_F(Output, FindsTooLittleRoomBeforeItChangesAnything) {
  RunWriter writer = new_writer();
  writer.commit(samples::point(0));
  const std::string before = content();
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{.rlim_cur = before.size() + 100'000, .rlim_max = old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  expect_error<base::Error>([&] { writer.commit(samples::point(1)); }, {"reserve", "too large"});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), before);
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
  put(at(".isoscale-elsewhere-99999999-0.tmp"), "of another machine");
  check_output(file(), Publish::only_new);
  EXPECT_THAT(directory_.names(), UnorderedElementsAre(".isoscale-elsewhere-99999999-0.tmp",
                                                       living.path().filename().string()));
}

using Parts = Output;

TEST_F(Parts, ArePointsPastTheLimit) {
  write({0, 12}, parts_only);
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0000.h5", "run.part0012.h5"));
  const RunData run = read_run(file());
  EXPECT_THAT(indices(run), ElementsAre(0, 12));
  EXPECT_EQ(run.points[1].step_times, samples::point(12).step_times);
}

TEST_F(Parts, StandBesideSmallPoints) {
  // The limit leaves room for the header and one point, not for two.
  RunWriter writer = new_writer(IfExists::refuse, units::Bytes{600'000});
  writer.commit(samples::point(0));
  writer.commit(samples::point(1, 20000));
  writer.commit(samples::skipped_point(2));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0001.h5"));
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Parts, AreFoundThroughALinkToTheRunFile) {
  const auto link = at("links/latest.h5");
  std::filesystem::create_directory(at("links"));
  std::filesystem::create_symlink("../run.h5", link);
  write({0}, parts_only);
  EXPECT_EQ(read_run(link).points.size(), 1U);
  RunWriter::resume(link, read_run(link), {}, parts_only).commit(samples::point(1));
  EXPECT_EQ(read_run(link).points.size(), 2U);
  EXPECT_THAT(directory_.names(),
              ElementsAre("links", "run.h5", "run.part0000.h5", "run.part0001.h5"));
}

TEST_F(Parts, OfAReplacedRunGoWithIt) {
  write({5}, parts_only);
  RunWriter writer{file(), another_run(), IfExists::overwrite, parts_only};
  EXPECT_EQ(read_run(file()).id, "0123456789abcdef");
  put(at("run.part0007.h5"), "of nobody");
  writer.commit(samples::point(6));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5", "run.part0006.h5", "run.part0007.h5"));
  EXPECT_EQ(read_run(file()).id, "another");
}

TEST_F(Parts, ThatAreMissingForeignOrAloneAreRefused) {
  const auto part = at("run.part0000.h5");
  write({0}, parts_only);
  expect_error([&] { (void)read_run(part); }, {"run.part0000.h5", "of the run run.h5"});
  std::filesystem::remove(part);
  expect_error([&] { (void)read_run(file()); }, {"run.part0000.h5", "no such file"});
  RunWriter{at("b.h5"), another_run(), IfExists::refuse, parts_only}.commit(samples::point(0));
  std::filesystem::rename(at("b.part0000.h5"), part);
  expect_error([&] { (void)read_run(file()); }, {"belongs to another run"});
}

class Owner : public RunFileTest {
 protected:
  [[nodiscard]] std::vector<int> committed() const { return indices(read_run(file())); }
};

TEST_F(Owner, IsTheLaunchThatWritesUntilItEnds) {
  {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    for (const int index : {1, 2}) {
      expect_error([&] { (void)resume(); }, {"run.h5", "written by another launch"});
      expect_error([&] { (void)new_writer(IfExists::overwrite); }, {"written by another launch"});
      writer.commit(samples::point(index));
    }
    writer.finish(samples::header());
  }
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
  resume().commit(samples::point(3));
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2, 3));
}

/// The file is locked from the moment that a launch resumes or is to replace it.
TEST_F(Owner, IsOneOfTwoThatResumeOrReplace) {
  write({0});
  for (const bool replaces : {false, true}) {
    const auto begin = [&] { return replaces ? new_writer(IfExists::overwrite) : resume(); };
    RunWriter first = begin();
    EXPECT_THROW((void)begin(), base::UsageError);
    first.commit(samples::point(1));
    EXPECT_THROW((void)begin(), base::UsageError);
    EXPECT_EQ(committed(), replaces ? std::vector{1} : std::vector({0, 1}));
  }
}

TEST_F(Owner, IsTheFirstOfTwoThatBeginWithoutAFile) {
  RunWriter first = new_writer(IfExists::overwrite);
  RunWriter second = new_writer(IfExists::overwrite);
  first.commit(samples::point(0));
  expect_error<base::Error>([&] { second.commit(samples::point(1)); },
                            {"another launch has written", "not overwritten"});
  EXPECT_THAT(committed(), ElementsAre(0));
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
    if (::write(ends[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char written = 0;
  ASSERT_EQ(::read(ends[0], &written, 1), 1);
  EXPECT_THROW((void)resume(), base::UsageError);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  resume().commit(samples::point(1));
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  EXPECT_THAT(directory_.names(), ElementsAre("run.h5"));
}

TEST_F(Owner, LeavesAReadOnlyFileAlone) {
  write({0});
  const auto before = std::filesystem::last_write_time(file());
  std::filesystem::permissions(file(), std::filesystem::perms{0444});
  expect_error([&] { (void)resume(); }, {"run.h5", "read-only"});
  EXPECT_EQ(std::filesystem::last_write_time(file()), before);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{0444});
}

TEST_F(Owner, KeepsThePermissionsOfWhatItReplaces) {
  write({0});
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
  write({0});
  const RunData read = read_run(file());
  resume().commit(samples::point(1));
  expect_error([&] { (void)RunWriter::resume(file(), read, {}); }, {"changed by another launch"});
  const RunData again = read_run(file());
  resume().finish(ended());
  EXPECT_THROW((void)RunWriter::resume(file(), again, {}), base::UsageError);
  EXPECT_THAT(committed(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace isoscale::results
