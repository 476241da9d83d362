// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

/// Run with the folder of the plugins that tests/unit/CMakeLists.txt builds.
namespace isoscale::executor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const fs::path folder = PLUGIN_FOLDER;

TEST(Plugins, OneOfTheSameBuildIsOpened) {
  const PluginSearch search = open_plugin("libplugin_good.so", {"/nowhere", folder});
  EXPECT_EQ(search.problem, "");
  ASSERT_TRUE(search.plugin);
  EXPECT_EQ(search.plugin->file, folder / "libplugin_good.so");
  EXPECT_EQ(search.plugin->table->problem(), "a stand-in");
}

TEST(Plugins, OneOfAnotherBuildIsRefusedWithBothFingerprints) {
  const PluginSearch search = open_plugin("libplugin_other.so", {folder});
  EXPECT_FALSE(search.plugin);
  EXPECT_THAT(search.problem,
              AllOf(HasSubstr("0.0.0, interface of another build"),
                    HasSubstr(std::string{core_fingerprint()}), HasSubstr("from one build")));
}

TEST(Plugins, ALibraryWithoutEntryIsNone) {
  const PluginSearch search = open_plugin("libplugin_none.so", {folder});
  EXPECT_FALSE(search.plugin);
  EXPECT_THAT(search.problem, HasSubstr("remove it"));
}

TEST(Plugins, AFileThatIsNoLibraryIsRefused) {
  const fs::path file = fs::path{testing::TempDir()} / "libisoscale_text.so";
  std::ofstream{file} << "not a library\n";
  const PluginSearch search = open_plugin(file.filename().string(), {file.parent_path()});
  fs::remove(file);
  EXPECT_FALSE(search.plugin);
  EXPECT_THAT(search.problem, HasSubstr("cannot be opened"));
}

TEST(Plugins, AbsenceNamesThePlacesAndTheWayOut) {
  const PluginSearch search = open_plugin("libisoscale_cuda.so", {"/nowhere", "/neither"});
  EXPECT_FALSE(search.plugin);
  EXPECT_THAT(search.problem, AllOf(HasSubstr("/nowhere or /neither"), HasSubstr("--device host"),
                                    HasSubstr("ISOSCALE_CUDA=ON")));
}

}  // namespace
}  // namespace isoscale::executor
