// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ostream>
#include <random>
#include <set>
#include <string>

#include "results/reader.hpp"
#include "results/run_files.hpp"
#include "results/writer.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::results {
namespace {

using config::IfExists;

/// How points are spread over files.
struct Layout {
  std::string name;
  units::Bytes part_limit;
};
void PrintTo(const Layout& value, std::ostream* out) { *out << value.name; }

class Killed : public testing::TestWithParam<Layout> {};

/// Writes points until it is killed, and says through the pipe after each that it is committed.
[[noreturn]] void write_for_ever(const std::filesystem::path& file, units::Bytes part_limit,
                                 int pipe_end) {
  try {
    RunWriter writer{file, samples::header(), IfExists::refuse, part_limit};
    for (int index = 0;; ++index) {
      writer.commit(samples::point(index, 3 + index % 5 * 1000));
      if (write(pipe_end, &index, sizeof index) != sizeof index) _exit(3);
    }
  } catch (const std::exception& error) {
    static_cast<void>(write(STDERR_FILENO, error.what(), std::string_view{error.what()}.size()) <
                      0);
    _exit(2);
  }
}

/// When a writer is killed: so long after so many commits.
struct Moment {
  int commits;
  useconds_t later;  ///< microseconds
};

/// Kills a writer at that moment; returns the indices whose commits had returned.
std::set<int> committed_before_kill(const std::filesystem::path& file, units::Bytes part_limit,
                                    Moment moment) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    write_for_ever(file, part_limit, ends[1]);
  }
  close(ends[1]);
  std::set<int> committed;
  int index = -1;
  for (int count = 0; count < moment.commits; ++count) {
    if (read(ends[0], &index, sizeof index) == sizeof index) committed.insert(index);
  }
  usleep(moment.later);
  kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "exit status " << status;
  while (read(ends[0], &index, sizeof index) == sizeof index) committed.insert(index);
  close(ends[0]);
  return committed;
}

TEST_P(Killed, LosesAtMostThePointInProgress) {
  const char* const given = std::getenv("ISOSCALE_TEST_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                         : std::random_device{}();
  std::printf("seed %u (set ISOSCALE_TEST_SEED to repeat)\n", seed);
  std::mt19937 random{seed};
  std::uniform_int_distribution<int> commits{0, 5};
  std::uniform_int_distribution<useconds_t> later{0, 15'000};
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const samples::Directory directory;
    const auto file = directory.path() / "run.h5";
    const std::set<int> committed =
        committed_before_kill(file, GetParam().part_limit, {commits(random), later(random)});
    std::set<int> readable;
    if (std::filesystem::exists(file)) {
      const RunData run = read_run(file);
      EXPECT_FALSE(run.complete);
      for (const PointData& point : run.points) {
        EXPECT_EQ(point.step_times,
                  samples::point(point.index, 3 + point.index % 5 * 1000).step_times);
        readable.insert(point.index);
      }
    }
    // Every commit that returned, and at most one that was about to.
    EXPECT_THAT(readable, testing::IsSupersetOf(committed));
    EXPECT_LE(readable.size(), committed.size() + 1);
    // The next run cleans up and can take the name.
    check_output(file, IfExists::overwrite);
    RunWriter{file, samples::header(), IfExists::overwrite}.finish(samples::header());
    EXPECT_THAT(directory.names(), testing::ElementsAre("run.h5"));
  }
}

INSTANTIATE_TEST_SUITE_P(Writers, Killed,
                         testing::Values(Layout{"OneFile", default_part_limit},
                                         Layout{"WithParts", units::Bytes{400'000}}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace isoscale::results
