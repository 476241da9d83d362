// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/integrity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/blake2b.hpp"
#include "base/error.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Digest : public RunFileTest {
 protected:
  Digest() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.commit(samples::point(1));
    writer.finish(samples::header());
  }
  /// As files were before they had digests.
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

}  // namespace
}  // namespace isoscale::results
