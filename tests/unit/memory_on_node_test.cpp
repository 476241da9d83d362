// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Where a thread's memory comes from, as the kernel tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/memory_on_node.hpp"

namespace isoscale::machine {
namespace {

/// The policy of the calling thread as linux/mempolicy.h has it; -1 = not told.
int policy() {
  int mode = -1;
  unsigned long nodes[64] = {};
  const long status = syscall(SYS_get_mempolicy, &mode, nodes, sizeof nodes * 8, nullptr, 0);
  return status == 0 ? mode & 0xFF : -1;
}

TEST(MemoryOnNode, HoldsWhileTheObjectLives) {
  constexpr int binds = 2;  // MPOL_BIND
  const int before = policy();
  if (before < 0) GTEST_SKIP() << "the kernel does not tell the policy of memory";
  {
    const MemoryOnNode first{0};
    EXPECT_EQ(policy(), binds);
  }
  // Memory near to the thread is what the default means.
  constexpr int by_default = 0, near_to_thread = 4;
  EXPECT_TRUE(policy() == before || (before == by_default && policy() == near_to_thread))
      << policy();
}

TEST(MemoryOnNode, RefusesANodeThatIsNotThere) {
  for (const int node : {-1, 4095}) {
    try {
      const MemoryOnNode nowhere{node};
      FAIL() << node;
    } catch (const PlacementError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("there is no NUMA node"));
      EXPECT_THAT(error.what(), testing::HasSubstr("there are 0"));
    }
  }
}

}  // namespace
}  // namespace isoscale::machine
