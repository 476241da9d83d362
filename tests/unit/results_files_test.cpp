// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/run_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/error.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

namespace fs = std::filesystem;
using settings::IfExists;

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

}  // namespace
}  // namespace isoscale::results
