// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// main() of tests that need a GPU: without one on every rank they are skipped, and say why.
#include <fmt/format.h>

#include "executor/cuda/device.hpp"
#include "tests/mpi/run_all.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  testing::InitGoogleTest(&argc, argv);
  const isoscale::comm::Environment environment{&argc, &argv};
  const auto world = isoscale::comm::Communicator::world();
  const auto vote = isoscale::comm::all_ok(world, isoscale::executor::cuda::device_problem());
  if (!vote.ok) {
    if (world.rank() == 0) fmt::print("SKIPPED: {}\n", vote.why);
    return skipped;
  }
  return isoscale::run_all_tests(world);
}
