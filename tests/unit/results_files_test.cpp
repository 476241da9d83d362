// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include "base/blake2b.hpp"
#include "results/hdf5/integrity.hpp"
#include "results/hdf5/run_files.hpp"
#include "results/reader/summary.hpp"
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
  // Who is to replace what has the name replaces the link, and not what it leads to.
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
  /// Makes the file one of those that were written before files had digests.
  void strip() const { put(std::string_view{whole_}.substr(digest_block_bytes)); }
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
    ASSERT_NE(state(), DigestState::right) << at;
  }
  for (const std::string& changed :
       {whole_ + '\0', whole_.substr(0, whole_.size() - 1), whole_.substr(0, 100)}) {
    put(changed);
    EXPECT_EQ(state(), DigestState::wrong);
  }
  put("");
  EXPECT_EQ(state(), DigestState::none);
  EXPECT_EQ(digest_state(at("absent")), DigestState::none);
}

TEST_F(Digest, WhenWrongIsWarnedOfAndTheRestIsRead) {
  change("", [](hdf5::Group& root) { root.set("later", 1.5); });
  const RunData run = read_run(file());
  EXPECT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[1].rows, samples::rows());
  EXPECT_THAT(run.altered, ElementsAre(AllOf(HasSubstr("run.h5"), HasSubstr("digest"))));
  EXPECT_EQ(run.warnings.at(0), run.altered[0]);
  EXPECT_EQ(run.warnings.size(), samples::header().warnings.size() + 1);
  expect_error([&] { (void)resume(); }, {"digest differs", "not gone on with"});
}

/// The run that a child process reads of such a file has all that the file holds.
TEST_F(Digest, IsMissedByNobodyInOlderFilesAndComesWithTheNextPoint) {
  const RunData here = read_run(file());
  strip();
  EXPECT_EQ(state(), DigestState::none);
  const RunData apart = read_run(file());
  EXPECT_EQ(apart.warnings, samples::header().warnings);
  EXPECT_THAT(apart.altered, IsEmpty());
  expect_same(apart, here);
  ASSERT_EQ(apart.points.size(), 2U);
  expect_same(apart.points[1], here.points[1]);
  resume().commit(samples::point(2));
  EXPECT_EQ(state(), DigestState::right);
  EXPECT_EQ(read_run(file()).points.size(), 3U);
}

TEST_F(Digest, OfPartsIsLookedAtToo) {
  resume(parts_only).commit(samples::point(2));
  const auto part = at("run.part0002.h5");
  EXPECT_EQ(digest_state(part), DigestState::right);
  EXPECT_EQ(read_run(file()).warnings, samples::header().warnings);
  put(part, content(part) + 'x');
  const RunData damaged = read_run(file());
  EXPECT_EQ(damaged.points.size(), 3U);
  EXPECT_THAT(damaged.altered, ElementsAre(HasSubstr("run.part0002.h5")));
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

/// The summary of a file before schema 1.9, which did not know how many points were planned.
TEST_F(Summary, OfAnOlderVersionIsUsedToo) {
  constexpr std::size_t end_bytes = 256;
  const std::string whole = content();
  const std::size_t begin = whole.rfind("{\"created\"");
  std::string text = whole.substr(begin, whole.size() - end_bytes - begin);
  const auto replace = [&](const std::string& old, const std::string& by) {
    ASSERT_NE(text.find(old), std::string::npos) << text.substr(0, 400);
    text.replace(text.find(old), old.size(), by);
  };
  replace("\"planned\":8,", "");
  replace(fmt::format("{}.{}", schema_major, schema_minor), "1.8");
  base::Blake2b digest;
  digest.add(text);
  put(whole.substr(0, begin) + text +
      digest_text("\nisoscale summary, version 1\n", digest, text.size(), end_bytes));
  const std::optional<RunSummary> older = read_summary(file());
  ASSERT_TRUE(older);
  EXPECT_EQ(older->run.planned, 0);
  EXPECT_EQ(older->run.points.size(), 2U);
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

}  // namespace
}  // namespace isoscale::results
