// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <cerrno>

#include "runner/watch/stuck_ranks.hpp"
#include "tests/fault/failing_calls.hpp"
#include "tests/unit/matchers.hpp"

namespace isoscale::runner {
namespace {

/// The last rank can send nothing: it never answers, and is the one that is named.
TEST(StuckRanksFaults, AMessageThatCannotBeSentIsNoAnswer) {
  const comm::Communicator world = comm::Communicator::world();
  const int mute = world.size() - 1;
  watch::RankPoll rank_poll{world};
  world.barrier();
  watch::RankState own{.rank = world.rank()};
  own.still = 1;
  if (world.rank() == mute) {
    fault::fail({.call = "MPI_Isend", .times = fault::Times::ever});
    testing::internal::CaptureStderr();
  }
  const watch::RankPoll::Result found = rank_poll.poll(own, units::Seconds{0.5}, [] {});
  fault::stop();
  if (world.rank() == mute) {
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("rank 0 cannot be asked"), HasSubstr("MPI call failed")));
    EXPECT_THAT(found.sentence, HasSubstr("first few answered"));
  } else {
    EXPECT_THAT(found.sentence, HasSubstr("rank " + std::to_string(mute) + " never answered"));
  }
  EXPECT_EQ(found.leader, world.rank() == mute ? -1 : 0);
  EXPECT_FALSE(found.calm);
  if (world.rank() == 0) {
    EXPECT_THAT(found.hang.silent, ElementsAre(mute));
  }
  world.barrier();
}

}  // namespace
}  // namespace isoscale::runner
