// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/blake2b.hpp"
#include "results_fixture.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;

class Files : public RunFileTest {
 protected:
  Files() { put(at("precious"), "precious"); }
  static unsigned mode_of(const fs::path& path) {
    return static_cast<unsigned>(fs::symlink_status(path).permissions());
  }
};

/// Run files and parts alike; nobody else may ever write them where the user does not say so.
TEST_F(Files, HaveThePermissionsThatTheUserGivesNewFiles) {
  for (const auto& [mask, mode] : {std::pair{022U, 0644U}, {077U, 0600U}, {027U, 0640U}}) {
    const mode_t before = umask(mask);
    write({0}, parts_only);
    umask(before);
    for (const fs::path& written : {file(), at("run.part0000.h5")}) {
      EXPECT_EQ(mode_of(written), mode);
      fs::remove(written);
    }
  }
}

/// In a directory that others write too, a link may come in between a look and the next step.
TEST_F(Files, AreNeverWrittenThroughALinkThatSomebodyPlanted) {
  TemporaryFile made{directory_.path()};
  fs::create_symlink(at("precious"), file());
  EXPECT_THROW((void)made.publish(file(), Publish::only_new), base::Error);
  EXPECT_TRUE(fs::is_symlink(file()));
  // A writer that is to replace a file replaces the link, and not what it leads to.
  (void)made.publish(file(), Publish::replace);
  EXPECT_FALSE(fs::is_symlink(file()));
  EXPECT_EQ(content(at("precious")), "precious");
}

TEST_F(Files, TakeNoNameThatALinkHasAlready) {
  fs::create_symlink(at("precious"), at("run.part0000.h5"));
  write({0}, parts_only);
  EXPECT_EQ(content(at("precious")), "precious");
  EXPECT_TRUE(fs::exists(at("run.part0000-2.h5")));
}

TEST_F(Files, ThatAreTemporaryHaveNamesThatNobodyGuesses) {
  const TemporaryFile one{directory_.path()}, other{directory_.path()};
  EXPECT_NE(one.path(), other.path());
  EXPECT_EQ(mode_of(one.path()) & 0022U, 0U);
}

class Digest : public RunFileTest {
 protected:
  Digest() {
    write({0, 1});
    resume().finish(samples::header());
    whole_ = content();
  }
  [[nodiscard]] DigestState state() const { return digest_state(file()); }

  std::string whole_;
};

TEST_F(Digest, StandsBeforeTheRestThatItIsOf) {
  base::Blake2b digest;
  digest.add(std::string_view{whole_}.substr(digest_block_bytes));
  EXPECT_THAT(whole_,
              StartsWith("isoscale file, digest version 1\ndigest blake2b-256 " + digest.finish() +
                         "\nbytes " + std::to_string(whole_.size() - 512) + "\n"));
  EXPECT_EQ(whole_[511], '\n');
  EXPECT_EQ(whole_.substr(513, 3), "HDF");
  EXPECT_EQ(state(), DigestState::right);
}

TEST_F(Digest, FindsEveryChange) {
  for (std::size_t at = 0; at < whole_.size(); at += at < 512 ? 1 : 977) {
    std::string changed = whole_;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    ASSERT_EQ(state(), DigestState::wrong) << at;
  }
  for (const std::string& changed :
       {whole_ + '\0', whole_.substr(0, whole_.size() - 1), whole_.substr(0, 100)}) {
    put(changed);
    EXPECT_EQ(state(), DigestState::wrong);
  }
  EXPECT_EQ(digest_state(at("absent")), DigestState::none);
}

TEST_F(Digest, WhenWrongIsRefusedAndWhenRemovedIsNotMissed) {
  change_elsewhere([](hdf5::Group& root) { root.set("git_hash", "changed"); });
  expect_refused("run.h5: is not as Isoscale wrote it");
  expect_refused("its digest differs", "tail -c +513 FILE > NEW");
  expect_error([&] { (void)resume(); }, {"is not as Isoscale wrote it", "copy it again"});
  strip();
  const RunData run = read_run(file());
  EXPECT_EQ(run.git_hash, "changed");
  EXPECT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[1].rows, samples::rows());
}

TEST_F(Digest, IsMissedByNobodyInOlderFilesAndComesWithTheNextPoint) {
  const RunData whole = read_run(file());
  strip();
  EXPECT_EQ(state(), DigestState::none);
  const RunData older = read_run(file());
  expect_same(older, whole);
  ASSERT_EQ(older.points.size(), 2U);
  expect_same(older.points[1], whole.points[1]);
  resume().commit(samples::point(2));
  EXPECT_EQ(state(), DigestState::right);
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Digest, OfPartsIsLookedAtToo) {
  resume(parts_only).commit(samples::point(2));
  const fs::path part = at("run.part0002.h5");
  EXPECT_EQ(digest_state(part), DigestState::right);
  put(part, content(part) + 'x');
  expect_error([&] { (void)read_run(file()); }, {"run.part0002.h5", "is not as Isoscale wrote it"});
  strip(part);
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

class Summary : public RunFileTest {
 protected:
  Summary() { write({0, 1}); }

  /// The stored summary is what the whole file gives.
  void expect_same() const {
    std::optional<RunSummary> stored = read_summary(file());
    for (PointFigures& figures : stored.value().figures) figures.part_file.reset();
    EXPECT_EQ(summary_text(*stored), summary_text(summary_of(read_run(file()))));
  }
};

TEST_F(Summary, IsThatOfTheWholeFileAtEveryCommit) {
  resume().commit(samples::skipped_point(2));
  expect_same();
  RunWriter writer = RunWriter::resume(file(), read_run(file()), {1}, parts_only);
  expect_same();
  writer.commit(samples::point(3));
  expect_same();
  EXPECT_EQ(read_summary(file())->run.points.size(), 3U);
  EXPECT_EQ(read_summary(file())->figures[2].part_file, "run.part0003.h5");
  writer.finish(ended());
  expect_same();
  EXPECT_TRUE(read_summary(file())->run.complete);
  EXPECT_EQ(digest_state(file()), DigestState::right) << "which covers the summary, too";
}

TEST_F(Summary, IsNotUsedWhereAPartIsMissingAndGoneWhenAnotherProgramChangesTheFile) {
  change("", [](hdf5::Group& root) { root.set("later", 1.5); });
  EXPECT_FALSE(read_summary(file()));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
  write({0}, parts_only);
  ASSERT_TRUE(read_summary(file()));
  fs::remove(at("run.part0000.h5"));
  EXPECT_FALSE(read_summary(file()));
}

TEST_F(Summary, IsNotUsedWhenDamaged) {
  const std::string whole = content();
  const std::size_t begin = whole.rfind("{\"created\"");
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < whole.size(); at += 7) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    ASSERT_FALSE(read_summary(file())) << at;
  }
  for (const std::string& changed :
       {whole.substr(0, whole.size() - 1), whole + ' ', std::string{}}) {
    put(changed);
    EXPECT_FALSE(read_summary(file()));
  }
  for (const fs::path& none : {directory_.path(), at("absent")}) EXPECT_FALSE(read_summary(none));
}

/// With points in part files, or with all in one.
class Resumed : public RunFileTest, public testing::WithParamInterface<bool> {
 protected:
  /// A run that ended with points 0, 1 and 3.
  void write_earlier() const {
    RunWriter writer = new_writer(IfExists::refuse, limit_);
    for (const int index : {0, 1, 3}) writer.commit(samples::point(index));
    writer.finish(ended());
  }
  [[nodiscard]] RunWriter resume(const std::set<int>& again) const {
    RunData earlier = read_run(file());
    earlier.warnings.emplace_back("resumed");
    return RunWriter::resume(file(), earlier, again, limit_);
  }
  [[nodiscard]] std::size_t parts() const { return directory_.names().size() - 1; }

  units::Bytes limit_ = GetParam() ? parts_only : default_part_limit;
};

TEST_P(Resumed, IsPartialWithoutThePointsThatComeAgainAndEndsAsIfItHadNotBeenInterrupted) {
  write_earlier();
  EXPECT_EQ(parts(), GetParam() ? 3U : 0U);
  const RunData before = read_run(file());
  RunWriter writer = resume({1, 2});
  const RunData partial = read_run(file());
  EXPECT_FALSE(partial.complete);
  EXPECT_EQ(partial.ended, "");
  EXPECT_EQ(partial.warnings.back(), "resumed");
  EXPECT_THAT(indices(partial), ElementsAre(0, 3));
  writer.commit(samples::point(2, 7));
  EXPECT_THAT(committed(), ElementsAre(0, 2, 3));
  writer.commit(samples::point(1, 5));
  EXPECT_THROW(writer.commit(samples::point(3)), base::Error);
  writer.finish(ended());
  const RunData run = read_run(file());
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.id, before.id);
  EXPECT_THAT(indices(run), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(run.points[0].step_times, before.points[0].step_times);
  EXPECT_EQ(run.points[1].step_times.size(), samples::point(1, 5).step_times.size());
  EXPECT_EQ(parts(), GetParam() ? 4U : 0U);
}

TEST_P(Resumed, RemovesOldPartsWhenTheNewOnesAreNamed) {
  write_earlier();
  const std::size_t before = parts();
  RunWriter writer = resume({1, 2, 3});
  EXPECT_EQ(parts(), before);
  writer.commit(samples::point(1));
  EXPECT_EQ(parts(), before);
  writer.finish(samples::header());  // point 3 was not measured again
  EXPECT_THAT(committed(), ElementsAre(0, 1));
  EXPECT_EQ(parts(), GetParam() ? 2U : 0U);
}

TEST_P(Resumed, RemovesAPartThatAKilledLaunchDidNotName) {
  write_earlier();
  const auto part = at("run.part0002.h5");
  RunWriter{at("other.h5"), samples::header(), IfExists::refuse, parts_only}.commit(
      samples::point(2));
  fs::rename(at("other.part0002.h5"), part);
  fs::remove(at("other.h5"));
  RunWriter writer = resume({2});
  EXPECT_FALSE(fs::exists(part));
  writer.commit(samples::point(2));
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2, 3));
}

TEST_P(Resumed, KeepsWhatOnlyHasTheNameOfAPart) {
  write_earlier();
  put(at("run.part0002.h5"), "keep");
  RunWriter{at("b.h5"), another_run(), IfExists::refuse, parts_only}.commit(samples::point(7));
  fs::rename(at("b.part0007.h5"), at("run.part0007.h5"));
  fs::remove(at("b.h5"));
  testing::internal::CaptureStderr();
  RunWriter writer = resume({2});
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* const word : {"run.part0002.h5", "run.part0007.h5", "not changed"}) {
    EXPECT_THAT(said, HasSubstr(word));
  }
  writer.commit(samples::point(2));
  writer.finish(samples::header());
  EXPECT_THAT(committed(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(content(at("run.part0002.h5")), "keep");
  EXPECT_TRUE(fs::exists(at("run.part0007.h5")));
  EXPECT_EQ(fs::exists(at("run.part0002-2.h5")), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Writers, Resumed, testing::Bool());

class KilledBeforeEveryCall : public testing::TestWithParam<bool> {};

/// Commits points 0 and 1 and finishes, stopped at first so that a tracer can take hold.
[[noreturn]] void write_traced(const fs::path& file, units::Bytes part_limit) {
  try {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    RunWriter writer{file, samples::header(), IfExists::refuse, part_limit};
    writer.commit(samples::point(0));
    getppid();  // marks the moment for the tracer: nothing else calls it
    writer.commit(samples::point(1));
    getppid();
    writer.finish(ended());
  } catch (...) {
    _exit(2);
  }
  _exit(0);
}

struct Progress {
  int calls = 0;       ///< made since point 0 was committed
  int committed = 0;   ///< points whose commits had returned
  bool ended = false;  ///< before it could be killed
  bool traced = true;  ///< whether this system lets a process trace its child
};

/// Runs a writer until it is about to make its call number `last` after the first commit.
Progress run_until(const fs::path& file, units::Bytes part_limit, int last) {
  const pid_t child = fork();
  if (child == 0) write_traced(file, part_limit);
  Progress progress;
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return {.traced = false};
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  while (progress.calls < last) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      progress.ended = true;
      return progress;
    }
    __ptrace_syscall_info info{};  // also where the child stops after a call
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) continue;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (info.entry.nr == SYS_getppid) ++progress.committed;
    if (progress.committed > 0) ++progress.calls;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return progress;
}

/// By default the writer is killed before every fifth call. Its files lie in memory if they can:
/// flushing hundreds of them to a disk takes its time.
TEST_P(KilledBeforeEveryCall, LosesNothingCommitted) {
  const fs::path memory = "/dev/shm";
  const fs::path place = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  int calls = 0;
  for (bool ended = false; !ended; calls += every_case() ? 1 : 5) {
    SCOPED_TRACE("killed before call " + std::to_string(calls + 1));
    const testing_support::ScratchDirectory directory{place};
    const auto file = directory.path() / "run.h5";
    const Progress progress =
        run_until(file, units::Bytes{GetParam() ? 1 : default_part_limit.value()}, calls + 1);
    if (!progress.traced) GTEST_SKIP() << "this system does not let a process trace its child";
    ended = progress.ended;
    const RunData run = read_run(file);
    std::set<int> indices;
    for (const PointData& point : run.points) {
      EXPECT_EQ(point.step_times, samples::point(point.index).step_times);
      indices.insert(point.index);
    }
    ASSERT_GE(indices.size(), static_cast<std::size_t>(progress.committed));
    ASSERT_LE(indices.size(), static_cast<std::size_t>(progress.committed) + 1);
    ASSERT_TRUE(run.complete || !ended);
    // The next run cleans up and can take the name.
    check_output(file, Publish::replace);
    RunWriter{file, samples::header(), IfExists::overwrite}.finish(samples::header());
    ASSERT_THAT(directory.names(), ElementsAre("run.h5"));
  }
  EXPECT_GT(calls, 50);  // copy, append, flush, rename: or nothing was traced
}

INSTANTIATE_TEST_SUITE_P(Writers, KilledBeforeEveryCall, testing::Bool());

}  // namespace
}  // namespace isoscale::results
