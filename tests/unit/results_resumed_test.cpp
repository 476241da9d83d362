// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ostream>

#include "results/hdf5/run_files.hpp"
#include "results_fixture.hpp"

/// Runs that are gone on with, and writers that are killed before each of their system calls.
namespace isoscale::results {
namespace {

/// The spread of points over files.
struct Layout {
  std::string name;
  units::Bytes part_limit;
  bool has_parts = false;
};
void PrintTo(const Layout& value, std::ostream* out) { *out << value.name; }

const auto layouts = testing::Values(Layout{"OneFile", default_part_limit, false},
                                     Layout{"WithParts", units::Bytes{1}, true});

std::string name_of(const testing::TestParamInfo<Layout>& instance) { return instance.param.name; }

class Resumed : public RunFileTest, public testing::WithParamInterface<Layout> {
 protected:
  /// A run that ended with points 0, 1 and 3.
  void write_earlier() const {
    RunWriter writer = new_writer(IfExists::refuse, GetParam().part_limit);
    for (const int index : {0, 1, 3}) writer.commit(samples::point(index));
    writer.finish(ended());
  }
  [[nodiscard]] RunWriter resume(const std::set<int>& again) const {
    RunData earlier = read_run(file());
    earlier.warnings.emplace_back("resumed");
    return RunWriter::resume(file(), earlier, again, GetParam().part_limit);
  }
  [[nodiscard]] std::size_t parts() const { return directory_.names().size() - 1; }
};

TEST_P(Resumed, IsPartialWithoutThePointsThatComeAgainAndEndsAsIfItHadNotBeenInterrupted) {
  write_earlier();
  EXPECT_EQ(parts(), GetParam().has_parts ? 3U : 0U);
  const RunData before = read_run(file());
  RunWriter writer = resume({1, 2});
  const RunData partial = read_run(file());
  EXPECT_FALSE(partial.complete);
  EXPECT_EQ(partial.ended, "");
  EXPECT_EQ(partial.warnings.back(), "resumed");
  EXPECT_THAT(indices(partial), ElementsAre(0, 3));
  writer.commit(samples::point(2, 7));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 2, 3));
  writer.commit(samples::point(1, 5));
  EXPECT_THROW(writer.commit(samples::point(3)), base::Error);
  writer.finish(ended());
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
  const auto part = at("run.part0002.h5");
  RunWriter{at("other.h5"), samples::header(), IfExists::refuse, parts_only}.commit(
      samples::point(2));
  std::filesystem::rename(at("other.part0002.h5"), part);
  std::filesystem::remove(at("other.h5"));
  RunWriter writer = resume({2});
  EXPECT_FALSE(std::filesystem::exists(part));
  writer.commit(samples::point(2));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
}

TEST_P(Resumed, KeepsWhatOnlyHasTheNameOfAPart) {
  write_earlier();
  put(at("run.part0002.h5"), "keep");
  RunWriter{at("b.h5"), another_run(), IfExists::refuse, parts_only}.commit(samples::point(7));
  std::filesystem::rename(at("b.part0007.h5"), at("run.part0007.h5"));
  std::filesystem::remove(at("b.h5"));
  testing::internal::CaptureStderr();
  RunWriter writer = resume({2});
  const std::string said = testing::internal::GetCapturedStderr();
  for (const char* const word : {"run.part0002.h5", "run.part0007.h5", "left as it is"}) {
    EXPECT_THAT(said, HasSubstr(word));
  }
  writer.commit(samples::point(2));
  writer.finish(samples::header());
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(content(at("run.part0002.h5")), "keep");
  EXPECT_TRUE(std::filesystem::exists(at("run.part0007.h5")));
  EXPECT_EQ(std::filesystem::exists(at("run.part0002-2.h5")), GetParam().has_parts);
}

INSTANTIATE_TEST_SUITE_P(Writers, Resumed, layouts, name_of);

class KilledBeforeEveryCall : public testing::TestWithParam<Layout> {};

/// Commits points 0 and 1 and finishes, stopped at first so that a tracer can take hold.
[[noreturn]] void write_traced(const std::filesystem::path& file, units::Bytes part_limit) {
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

/// The number of the system call that a stopped process is about to make; nullopt after a call.
std::optional<std::uint64_t> call_of(pid_t child) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) return std::nullopt;
  return info.op == PTRACE_SYSCALL_INFO_ENTRY ? std::optional{info.entry.nr} : std::nullopt;
}

struct Progress {
  int calls = 0;       ///< made since point 0 was committed
  int committed = 0;   ///< points whose commits had returned
  bool ended = false;  ///< before it could be killed
  bool traced = true;  ///< whether this system lets a process trace its child
};

/// Runs a writer until it is about to make its call number `last` after the first commit.
Progress run_until(const std::filesystem::path& file, units::Bytes part_limit, int last) {
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
    const std::optional<std::uint64_t> call = call_of(child);
    if (call == SYS_getppid) ++progress.committed;
    if (call && progress.committed > 0) ++progress.calls;
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return progress;
}

/// In memory where there is such a place: flushing hundreds of files to a disk takes its time.
std::filesystem::path quick_place() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// By default the writer is killed before every fifth call.
TEST_P(KilledBeforeEveryCall, LosesNothingCommitted) {
  int calls = 0;
  for (bool ended = false; !ended; calls += every_case() ? 1 : 5) {
    SCOPED_TRACE("killed before call " + std::to_string(calls + 1));
    const testing_support::ScratchDirectory directory{quick_place()};
    const auto file = directory.path() / "run.h5";
    const Progress progress = run_until(file, GetParam().part_limit, calls + 1);
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

INSTANTIATE_TEST_SUITE_P(Writers, KilledBeforeEveryCall, layouts, name_of);

}  // namespace
}  // namespace isoscale::results
