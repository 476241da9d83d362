// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/blake2b.hpp"
#include "base/error.hpp"
#include "results/hdf5/integrity.hpp"
#include "results/hdf5/run_files.hpp"
#include "results/reader/summary.hpp"
#include "results_fixture.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;
using settings::IfExists;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Files : public RunFileTest {
 protected:
  void write(IfExists if_exists) const {
    RunWriter writer = new_writer(if_exists, units::Bytes{1});
    writer.commit(samples::point(0));
    writer.finish(samples::header());
  }
  static unsigned mode_of(const fs::path& path) {
    return static_cast<unsigned>(fs::symlink_status(path).permissions());
  }
};

/// Run files and parts alike; nobody else may ever write them where the user does not say so.
TEST_F(Files, HaveThePermissionsThatTheUserGivesNewFiles) {
  struct Case {
    mode_t mask;
    unsigned mode;
  };
  for (const Case& expected : {Case{022, 0644}, Case{077, 0600}, Case{027, 0640}}) {
    const mode_t before = umask(expected.mask);
    write(IfExists::overwrite);
    umask(before);
    EXPECT_EQ(mode_of(file()), expected.mode);
    EXPECT_EQ(mode_of(directory_.path() / "run.part0000.h5"), expected.mode);
    fs::remove(file());
    fs::remove(directory_.path() / "run.part0000.h5");
  }
}

/// In a directory that others write too, a link may come in between a look and the next step.
TEST_F(Files, AreNeverWrittenThroughALinkThatSomebodyPlanted) {
  const fs::path precious = directory_.path() / "precious";
  std::ofstream{precious} << "precious";
  TemporaryFile made{directory_.path()};
  fs::create_symlink(precious, file());
  EXPECT_THROW((void)made.publish(file(), Publish::only_new), base::Error);
  EXPECT_TRUE(fs::is_symlink(file()));
  // Who is to replace what has the name replaces the link, and not what it leads to.
  (void)made.publish(file(), Publish::replace);
  EXPECT_FALSE(fs::is_symlink(file()));
  EXPECT_EQ(content(precious), "precious");
}

TEST_F(Files, TakeNoNameThatALinkHasAlready) {
  const fs::path precious = directory_.path() / "precious";
  std::ofstream{precious} << "precious";
  fs::create_symlink(precious, directory_.path() / "run.part0000.h5");
  write(IfExists::overwrite);
  EXPECT_EQ(content(precious), "precious");
  EXPECT_TRUE(fs::exists(directory_.path() / "run.part0000-2.h5"));
}

TEST_F(Files, ThatAreTemporaryHaveNamesThatNobodyGuesses) {
  const TemporaryFile one{directory_.path()}, other{directory_.path()};
  EXPECT_NE(one.path(), other.path());
  EXPECT_EQ(mode_of(one.path()) & 0022U, 0U);
}

class Digest : public RunFileTest {
 protected:
  Digest() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.commit(samples::point(1));
    writer.finish(samples::header());
  }
  /// Makes the file one of those that were written before files had digests.
  void strip() const { put(std::string_view{content()}.substr(digest_block_bytes)); }
};

TEST_F(Digest, StandsBeforeTheRestThatItIsOf) {
  const std::string bytes = content();
  base::Blake2b digest;
  digest.add(std::string_view{bytes}.substr(digest_block_bytes));
  EXPECT_THAT(bytes, testing::StartsWith("isoscale file, digest version 1\ndigest blake2b-256 " +
                                         digest.finish() + "\nbytes " +
                                         std::to_string(bytes.size() - 512) + "\n"));
  EXPECT_EQ(bytes[511], '\n');
  EXPECT_EQ(bytes.substr(513, 3), "HDF");
  EXPECT_EQ(digest_state(file()), DigestState::right);
}

TEST_F(Digest, FindsEveryChange) {
  const std::string whole = content();
  for (std::size_t at = 0; at < whole.size(); at += at < 512 ? 1 : 977) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    ASSERT_NE(digest_state(file()), DigestState::right) << at;
  }
  put(whole + '\0');
  EXPECT_EQ(digest_state(file()), DigestState::wrong);
  put(std::string_view{whole}.substr(0, whole.size() - 1));
  EXPECT_EQ(digest_state(file()), DigestState::wrong);
  put(std::string_view{whole}.substr(0, 100));
  EXPECT_EQ(digest_state(file()), DigestState::wrong);
  put("");
  EXPECT_EQ(digest_state(file()), DigestState::none);
  EXPECT_EQ(digest_state(directory_.path() / "absent"), DigestState::none);
}

TEST_F(Digest, WhenWrongIsWarnedOfAndTheRestIsRead) {
  change("", [](hdf5::Group& root) { root.set("later", 1.5); });
  const RunData run = read_run(file());
  EXPECT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[1].rows, samples::rows());
  ASSERT_FALSE(run.warnings.empty());
  EXPECT_THAT(run.warnings.back(), AllOf(HasSubstr("run.h5"), HasSubstr("digest differs")));
  EXPECT_THAT([&] { (void)RunWriter::resume(file(), run, {}); },
              ThrowsMessage<base::UsageError>(
                  AllOf(HasSubstr("digest differs"), HasSubstr("not gone on with"))));
}

TEST_F(Digest, IsMissedByNobodyInOlderFilesAndComesWithTheNextPoint) {
  strip();
  EXPECT_EQ(digest_state(file()), DigestState::none);
  const RunData run = read_run(file());
  EXPECT_EQ(run.warnings, samples::header().warnings);
  EXPECT_EQ(run.points.size(), 2U);
  RunWriter::resume(file(), run, {}).commit(samples::point(2));
  EXPECT_EQ(digest_state(file()), DigestState::right);
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Digest, OfPartsIsLookedAtToo) {
  const RunData one_file = read_run(file());
  RunWriter::resume(file(), one_file, {}, units::Bytes{1}).commit(samples::point(2));
  const auto part = directory_.path() / "run.part0002.h5";
  EXPECT_EQ(digest_state(part), DigestState::right);
  EXPECT_EQ(read_run(file()).warnings, one_file.warnings);
  std::ofstream{part, std::ios::binary | std::ios::app} << 'x';
  const RunData damaged = read_run(file());
  EXPECT_EQ(damaged.points.size(), 3U);
  EXPECT_THAT(damaged.warnings.back(), HasSubstr("run.part0002.h5 is not as Isoscale wrote it"));
}

/// The run that a child process read has all that the run file holds.
TEST_F(Digest, ChangesNothingInWhatIsRead) {
  const RunData here = read_run(file());
  const std::string whole = content();
  strip();
  const RunData apart = read_run(file());
  put(whole);
  expect_same(apart, here);
  EXPECT_EQ(apart.preflight, here.preflight);
  EXPECT_EQ(apart.calibration, here.calibration);
  ASSERT_EQ(apart.points.size(), here.points.size());
  expect_same(apart.points[1], here.points[1]);
  EXPECT_EQ(apart.points[1].traces.size(), here.points[1].traces.size());
}

class Summary : public RunFileTest {
 protected:
  Summary() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.commit(samples::skipped_point(1));
  }

  /// The stored summary is what the whole file gives.
  void expect_same() const {
    const std::optional<RunSummary> stored = read_summary(file());
    ASSERT_TRUE(stored);
    Confidences confidences;
    const RunSummary read = summary_of(read_run(file()), confidences);
    RunSummary without_parts = *stored;
    for (PointFigures& figures : without_parts.figures) figures.part_file.reset();
    EXPECT_EQ(summary_text(without_parts), summary_text(read));
  }
};

TEST_F(Summary, IsThatOfTheWholeFileAtEveryCommit) {
  expect_same();
  const RunData run = read_run(file());
  RunWriter writer = RunWriter::resume(file(), run, {1}, units::Bytes{1});
  expect_same();
  writer.commit(samples::point(2));
  expect_same();
  EXPECT_EQ(read_summary(file())->run.points.size(), 2U);
  EXPECT_EQ(read_summary(file())->figures[1].part_file, "run.part0002.h5");
  RunData last = run;
  last.complete = true;
  last.ended = "2026-01-02T03:05:00Z";
  writer.finish(last);
  expect_same();
  EXPECT_TRUE(read_summary(file())->run.complete);
  EXPECT_EQ(digest_state(file()), DigestState::right) << "which covers the summary, too";
}

TEST_F(Summary, IsNotUsedWhereAPartIsMissing) {
  RunWriter::resume(file(), read_run(file()), {}, units::Bytes{1}).commit(samples::point(2));
  ASSERT_TRUE(read_summary(file()));
  std::filesystem::remove(directory_.path() / "run.part0002.h5");
  EXPECT_FALSE(read_summary(file()));
}

TEST_F(Summary, IsGoneWhenAnotherProgramChangesTheFile) {
  change("", [](hdf5::Group& root) { root.set("later", 1.5); });
  EXPECT_FALSE(read_summary(file()));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
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
  put(std::string_view{whole}.substr(0, whole.size() - 1));
  EXPECT_FALSE(read_summary(file()));
  put(whole + ' ');
  EXPECT_FALSE(read_summary(file()));
  put("");
  EXPECT_FALSE(read_summary(file()));
  EXPECT_FALSE(read_summary(directory_.path()));
  EXPECT_FALSE(read_summary(directory_.path() / "absent"));
}

}  // namespace
}  // namespace isoscale::results
