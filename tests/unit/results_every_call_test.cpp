// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "results/hdf5/run_files.hpp"
#include "results/reader/reader.hpp"
#include "results/writer/writer.hpp"
#include "tests/unit/results_samples.hpp"

/// A writer is killed before each of its system calls in turn.
namespace isoscale::results {
namespace {

struct Files {
  std::string name;
  units::Bytes part_limit;
};
void PrintTo(const Files& value, std::ostream* out) { *out << value.name; }

class KilledBeforeEveryCall : public testing::TestWithParam<Files> {};

/// Commits points 0 and 1 and finishes, stopped at first so that a tracer can take hold.
[[noreturn]] void write_traced(const std::filesystem::path& file, units::Bytes part_limit) {
  try {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    RunWriter writer{file, samples::header(), settings::IfExists::refuse, part_limit};
    writer.commit(samples::point(0));
    getppid();  // marks the moment for the tracer: nothing else calls it
    writer.commit(samples::point(1));
    getppid();
    RunData last = samples::header();
    last.complete = true;
    writer.finish(last);
  } catch (...) {
    _exit(2);
  }
  _exit(0);
}

/// The number of the system call that a stopped process is about to make; nullopt after a call.
std::optional<std::uint64_t> call_of(pid_t child) {
  __ptrace_syscall_info info{};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) {
    return std::nullopt;
  }
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

TEST_P(KilledBeforeEveryCall, LosesNothingCommitted) {
  int calls = 0;
  for (bool ended = false; !ended; ++calls) {
    SCOPED_TRACE("killed before call " + std::to_string(calls + 1));
    const samples::Directory directory{quick_place()};
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
    check_output(file, settings::IfExists::overwrite);
    RunWriter{file, samples::header(), settings::IfExists::overwrite}.finish(samples::header());
    ASSERT_THAT(directory.names(), testing::ElementsAre("run.h5"));
  }
  EXPECT_GT(calls, 50);  // copy, append, flush, rename: or nothing was traced
}

INSTANTIATE_TEST_SUITE_P(Writers, KilledBeforeEveryCall,
                         testing::Values(Files{"OneFile", default_part_limit},
                                         Files{"Parts", units::Bytes{1}}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace isoscale::results
