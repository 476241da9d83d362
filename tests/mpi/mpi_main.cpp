// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// main() of test programs that run as several ranks. Every rank runs every test; the run fails when
// any rank fails. Assertions between collective calls must not be fatal (EXPECT, not ASSERT): a
// rank that leaves a test early leaves the others waiting, until ctest ends them all.
#include "tests/mpi/run_all.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const isoscale::comm::Environment environment{&argc, &argv};
  return isoscale::run_all_tests(isoscale::comm::Communicator::world());
}
