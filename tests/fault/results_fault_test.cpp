// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "base/error.hpp"
#include "results/integrity.hpp"
#include "results/reader.hpp"
#include "results/run_files.hpp"
#include "results/writer.hpp"
#include "tests/fault/every_call.hpp"
#include "tests/fault/open_handles.hpp"
#include "tests/fault/samples.hpp"
#include "tests/unit/results_samples.hpp"

/// Every call that writing and reading run files makes fails in turn. Whatever fails: what returned
/// is in the file, what did not says so in a sentence that names the file, and nothing is left
/// over.
namespace isoscale::results {
namespace {

namespace fs = std::filesystem;
using config::IfExists;
using fault::Failing;

/// In memory where there is such a place: flushing thousands of files to a disk takes its time.
fs::path quick_place() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
}

/// Point 1 is large enough for chunks.
PointData sample(int index) { return samples::point(index, index == 1 ? 2100 : 3); }

RunData last_words() {
  RunData last = samples::header();
  last.complete = true;
  last.ended = "2026-01-02T03:05:00Z";
  last.calibration = samples::calibration();
  return last;
}

RunData first_words() {
  RunData first = samples::header();
  first.preflight = samples::preflight();
  return first;
}

/// What was done before a call failed.
struct Done {
  std::map<int, PointData> committed{};
  bool finished = false;
  std::optional<RunData> read{};
  std::string error{};  ///< "" when nothing was thrown
};

/// The folder of one round, and what is done in it.
class Round {
 public:
  [[nodiscard]] fs::path file() const { return directory_->path() / "run.h5"; }
  [[nodiscard]] std::vector<std::string> names() const { return directory_->names(); }

  void begin() {
    directory_ = std::make_unique<samples::Directory>(quick_place());
    done_ = {};
  }
  void begin_with_run(units::Bytes part_limit) {
    if (!whole_run_) {
      begin();
      RunWriter writer{file(), first_words(), IfExists::refuse, part_limit};
      for (const int index : {0, 1}) writer.commit(sample(index));
      writer.finish(last_words());
      whole_run_ = std::move(directory_);
    }
    begin();
    fs::copy(whole_run_->path(), directory_->path());
  }
  /// Only errors of ours may come out of it.
  template <class Work>
  void act(Work&& work) {
    try {
      work(done_);
    } catch (const base::Error& error) {
      done_.error = error.what();
      if (done_.error.empty()) done_.error = "nothing is said";
    }
  }
  void commit(RunWriter& writer, int index) {
    writer.commit(sample(index));
    done_.committed[index] = sample(index);
  }
  void finish(RunWriter& writer) {
    writer.finish(last_words());
    done_.finished = true;
  }
  void clear() { directory_.reset(); }
  void remember_handles() { handles_ = fault::open_handles(); }

  [[nodiscard]] const Done& done() const { return done_; }

  [[nodiscard]] std::string leaks() const {
    const std::string now = fault::open_handles();
    return now == handles_ ? "" : fmt::format("open are {}; before {}. ", now, handles_);
  }

  /// Whether the file has all that is said to be in it.
  [[nodiscard]] std::string missing() const {
    if (!fs::exists(file())) return done_.committed.empty() ? "" : "there is no file. ";
    const RunData run = read_run(file());
    std::string problems;
    if (!fault::same_header(run, first_words())) problems += "the header differs. ";
    for (const auto& [index, point] : done_.committed) {
      const auto found = std::ranges::find(run.points, index, &PointData::index);
      if (found == run.points.end()) {
        problems += fmt::format("point {} is missing. ", index);
      } else if (!fault::same(*found, point)) {
        problems += fmt::format("point {} differs. ", index);
      }
    }
    if (done_.finished && !(run.complete && run.calibration == last_words().calibration)) {
      problems += "the end is missing. ";
    }
    return problems;
  }

 private:
  std::unique_ptr<samples::Directory> directory_;
  std::unique_ptr<samples::Directory> whole_run_;  ///< made once
  Done done_;
  std::string handles_;
};

/// A fault's own traces: what cannot be removed stays.
bool leaves_files(const Failing& failing) {
  return failing.call.starts_with("unlink") || failing.call == "renameat2";
}

struct Scenario {
  std::string name;
  units::Bytes part_limit = default_part_limit;
};
void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

class Faults : public testing::TestWithParam<Scenario> {
 protected:
  /// Fails the calls of the work in turn; `check` adds to what is looked at after each.
  void fail_each(std::function<void()> prepare, std::function<void(Done&)> act,
                 const std::function<std::string(const Failing&)>& check) {
    Failing current;
    const fault::Work work{
        .prepare =
            [&] {
              prepare();
              round_.remember_handles();
            },
        .act = [&] { round_.act(act); },
        .check =
            [&] {
              std::string problems = round_.leaks() + check(current);
              const std::string& said = round_.done().error;
              if (!said.empty() && said.find(round_.file().parent_path()) == said.npos) {
                problems += "no file is named. ";
              }
              round_.clear();
              if (!problems.empty()) problems += fmt::format("Said: '{}'", said);
              return problems;
            }};
    constexpr int most = 1;
    prepare();
    round_.act(act);  // HDF5 opens some things once and for all
    const std::vector<Failing> plan = fault::plan(work, most);
    ASSERT_EQ(round_.done().error, "");
    ASSERT_GT(plan.size(), 50U);
    for (const Failing& failing : plan) {
      current = failing;
      const std::string problems = fault::done_with(failing, work);
      EXPECT_TRUE(problems.empty()) << fault::to_text(failing) << ": " << problems;
    }
    std::printf("%zu calls failed in turn\n", plan.size());
  }

  Round round_;
};

class WritingFaults : public Faults {};
class ReadingFaults : public Faults {};

std::string left_over(const Round& round, const Failing& failing) {
  if (leaves_files(failing)) return "";
  for (const std::string& name : round.names()) {
    if (name.ends_with(".tmp")) return fmt::format("{} is left over. ", name);
  }
  return "";
}

TEST_P(WritingFaults, NewRun) {
  fail_each(
      [&] { round_.begin(); },
      [&](Done&) {
        RunWriter writer{round_.file(), first_words(), IfExists::refuse, GetParam().part_limit};
        for (const int index : {0, 1}) round_.commit(writer, index);
        round_.finish(writer);
      },
      [&](const Failing& failing) { return round_.missing() + left_over(round_, failing); });
}

TEST_P(WritingFaults, ReplacedRun) {
  fail_each(
      [&] { round_.begin_with_run(GetParam().part_limit); },
      [&](Done&) {
        check_output(round_.file(), IfExists::overwrite);
        RunWriter writer{round_.file(), first_words(), IfExists::overwrite, GetParam().part_limit};
        round_.commit(writer, 0);
        round_.finish(writer);
      },
      [&](const Failing& failing) { return round_.missing() + left_over(round_, failing); });
}

TEST_P(WritingFaults, ResumedRun) {
  fail_each([&] { round_.begin_with_run(GetParam().part_limit); },
            [&](Done& done) {
              done.committed[0] = sample(0);  // is kept
              RunWriter writer = RunWriter::resume(round_.file(), read_run(round_.file()), {1},
                                                   GetParam().part_limit);
              round_.commit(writer, 1);
              round_.finish(writer);
            },
            [&](const Failing& failing) { return round_.missing() + left_over(round_, failing); });
}

INSTANTIATE_TEST_SUITE_P(Writers, WritingFaults,
                         testing::Values(Scenario{.name = "OneFile"},
                                         Scenario{.name = "Parts", .part_limit = units::Bytes{1}}),
                         [](const auto& instance) { return instance.param.name; });

/// HDF5 1.10 crashes as the process ends where it closes a file that could not be closed before.
TEST(EndOfProcess, IsCleanAfterFilesThatCouldNotBeClosed) {
  Round round;
  const auto write_run = [&round](Done&) {
    RunWriter writer{round.file(), first_words(), IfExists::refuse};
    round.commit(writer, 0);
    round.finish(writer);
  };
  const fault::Work work{.prepare = [&] { round.begin(); },
                         .act = [&] { round.act(write_run); },
                         .check = [] { return std::string{}; }};
  constexpr int most = 12;
  int tried = 0;
  for (const Failing& failing : fault::plan(work, most)) {
    if (!failing.call.starts_with("pwrite")) continue;
    ++tried;
    round.begin();
    EXPECT_EXIT(
        {
          fault::fail(failing);
          round.act(write_run);
          fault::stop();
          std::exit(round.done().error.empty() ? 2 : 0);
        },
        testing::ExitedWithCode(0), "")
        << fault::to_text(failing);
    round.clear();
  }
  EXPECT_GE(tried, most);
}

std::string unlike_what_was_written(const Done& done) {
  if (!done.error.empty()) return "";
  if (!done.read) return "nothing was read. ";
  if (!fault::same_header(*done.read, first_words())) return "the header differs. ";
  if (done.read->points.size() != 2) return "not all points were read. ";
  for (const int index : {0, 1}) {
    if (!fault::same(done.read->points[static_cast<std::size_t>(index)], sample(index))) {
      return fmt::format("point {} differs. ", index);
    }
  }
  return done.read->calibration == last_words().calibration ? "" : "the calibration differs. ";
}

TEST_P(ReadingFaults, Here) {
  fail_each([&] { round_.begin_with_run(GetParam().part_limit); },
            [&](Done& done) { done.read = read_run(round_.file()); },
            [&](const Failing&) { return unlike_what_was_written(round_.done()); });
}

/// A file without a digest is read by a process of its own.
TEST_P(ReadingFaults, Apart) {
  fail_each(
      [&] {
        round_.begin_with_run(GetParam().part_limit);
        setenv("TMPDIR", round_.file().parent_path().c_str(), 1);
        std::ifstream in{round_.file(), std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
        std::ofstream{round_.file(), std::ios::binary | std::ios::trunc}
            << std::string_view{bytes}.substr(digest_block_bytes);
      },
      [&](Done& done) { done.read = read_run(round_.file()); },
      [&](const Failing&) { return unlike_what_was_written(round_.done()); });
}

INSTANTIATE_TEST_SUITE_P(Readers, ReadingFaults,
                         testing::Values(Scenario{.name = "OneFile"},
                                         Scenario{.name = "Parts", .part_limit = units::Bytes{1}}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace isoscale::results
