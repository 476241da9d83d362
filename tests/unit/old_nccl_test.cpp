// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <dlfcn.h>

#include "executor/plugin.hpp"
#include "matchers.hpp"

/// The plugin as it is shipped, with an NCCL that lacks all that came after 2.18.
namespace isoscale::executor {
namespace {

TEST(OldNccl, ThePluginLoadsWithoutWhatCameAfter218) {
  // The loader takes a library for the one of that name that it has already.
  void* const old = ::dlopen(OLD_NCCL, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(old, nullptr) << ::dlerror();
  ASSERT_EQ(::dlsym(old, "ncclTeamLsa"), nullptr);
  const std::filesystem::path plugin = PLUGIN;
  const PluginSearch search = open_plugin(plugin.filename().string(), {plugin.parent_path()});
  EXPECT_EQ(search.problem, "");
  ASSERT_NE(search.table, nullptr);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "ncclTeamLsa"), nullptr) << "another NCCL was loaded";
  EXPECT_THAT(search.table->problem(), Not(HasSubstr("NCCL")));
}

}  // namespace
}  // namespace isoscale::executor
