// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/plugin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

/// Run with the folder of the plugins that tests/unit/CMakeLists.txt builds.
namespace isoscale::executor {
namespace {

namespace fs = std::filesystem;

const fs::path folder = PLUGIN_FOLDER;

TEST(Plugins, OneOfTheSameBuildIsOpened) {
  const PluginSearch search = open_plugin("libplugin_good.so", {"/nowhere", folder});
  EXPECT_EQ(search.problem, "");
  ASSERT_NE(search.table, nullptr);
  EXPECT_EQ(search.table->problem(), "a stand-in");
}

/// One that is absent, no library or of another build: cli/device_test.py.
TEST(Plugins, ALibraryThatIsNoneIsRefused) {
  const PluginSearch search = open_plugin("libplugin_none.so", {folder});
  EXPECT_EQ(search.table, nullptr);
  EXPECT_THAT(search.problem, testing::HasSubstr("remove it"));
}

}  // namespace
}  // namespace isoscale::executor
