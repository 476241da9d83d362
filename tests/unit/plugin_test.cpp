// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/plugin.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "words.hpp"

/// Run with the folder of the plugins that tests/unit/CMakeLists.txt builds.
namespace isoscale::executor {
namespace {

namespace fs = std::filesystem;

const fs::path folder = PLUGIN_FOLDER;

TEST(Plugins, OneOfTheSameBuildIsOpened) {
  const PluginSearch search = open_plugin("libplugin_good.so", {"/nowhere", folder});
  EXPECT_EQ(search.problem, "");
  ASSERT_TRUE(search.plugin);
  EXPECT_EQ(search.plugin->file, folder / "libplugin_good.so");
  EXPECT_EQ(search.plugin->table->problem(), "a stand-in");
}

TEST(Plugins, OthersAreRefusedWithAWayOut) {
  const fs::path text = fs::path{testing::TempDir()} / "libisoscale_text.so";
  std::ofstream{text} << "not a library\n";
  struct Case {
    const char* name;
    std::vector<fs::path> folders;
    std::vector<std::string> words;
  };
  for (const Case& is : {
           Case{"libplugin_other.so",
                {folder},
                {"interface of another build", std::string{core_fingerprint()}}},
           Case{"libplugin_none.so", {folder}, {"remove it"}},  // a library without entry
           Case{"libisoscale_text.so", {text.parent_path()}, {"cannot be opened"}},
           Case{"libisoscale_cuda.so",
                {"/nowhere", "/neither"},
                {"/nowhere or /neither", "--device host", "ISOSCALE_CUDA=ON"}},
       }) {
    const PluginSearch search = open_plugin(is.name, is.folders);
    EXPECT_FALSE(search.plugin) << is.name;
    testing_support::expect_words(search.problem, is.words);
  }
  fs::remove(text);
}

}  // namespace
}  // namespace isoscale::executor
