// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Random combinations of options, ISOSCALE_RANDOM_TWINS of them, compute what one rank computes.

#include "tests/mpi/twin_cases.hpp"
#include "tests/support/random_requests.hpp"

namespace isoscale::runner {
namespace {

TEST(RandomTwins, EqualOneRank) {
  const char* const given = std::getenv("ISOSCALE_RANDOM_TWINS");
  const int wanted = given != nullptr ? std::stoi(given) : 50;
  const Ranks ranks;
  workloads::RandomRequests requests{20260101, {"transport"}};  // the host has one
  for (int i = 0; i < wanted; ++i) {
    const workloads::Request request = requests.next(ranks.world.size());
    expect_equal_to_one_rank(ranks, {.name = workloads::describe(request),
                                     .request = request,
                                     .streams = i % 2 == 0 ? executor::HostStreams::folded
                                                           : executor::HostStreams::threads});
  }
}

}  // namespace
}  // namespace isoscale::runner
