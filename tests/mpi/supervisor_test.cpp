// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/supervisor.hpp"

#include "tests/unit/matchers.hpp"

namespace isoscale::runner {
namespace {

constexpr units::Seconds timeout{0.5};

class Supervised : public testing::Test {
 protected:
  void SetUp() override { supervisor_.set_timeout(timeout); }

  const comm::Communicator world_ = comm::Communicator::world();
  watch::HeldSignals signals_;
  watch::Supervisor supervisor_{world_, signals_};
};

TEST_F(Supervised, WhatFailsOutsideOfPointsIsThrown) {
  const auto work = [&] {
    const watch::Supervisor::Watch watch{supervisor_};
    throw std::runtime_error("all is broken");
  };
  EXPECT_THROW(work(), std::runtime_error);
}

/// SIGUSR1 would kill by itself; by then its request has come, and the process goes on.
TEST_F(Supervised, WhoHasEndedIsNotKilledByTheSignalToEndSoon) {
  { const watch::Supervisor::Watch watch{supervisor_}; }
  EXPECT_EQ(raise(SIGUSR1), 0);
  EXPECT_FALSE(supervisor_.shall_end_soon());
}

/// Rank 0 calls; the others have been at one op for 0.7 of the timeout.
watch::RankPoll::Result called_by(bool is_idle, const comm::Communicator& world) {
  watch::RankPoll rank_poll{world};
  watch::RankState own{.rank = world.rank()};
  own.rests = world.rank() == 0 && is_idle;
  own.still = timeout.value() * (world.rank() == 0 ? 1.1 : 0.7);
  watch::RankPoll::Result result = rank_poll.poll(own, timeout, [] {});
  world.barrier();
  return result;
}

TEST(RankPoll, IdleRanksWaitForWhoIsNotYetDue) {
  const comm::Communicator world = comm::Communicator::world();
  if (world.size() < 2) GTEST_SKIP() << "one rank has nobody to ask";
  EXPECT_TRUE(called_by(true, world).calm);
  EXPECT_FALSE(called_by(false, world).calm);
}

TEST(RankPoll, IsCalmWhereNobodyHasAnythingToDo) {
  const comm::Communicator world = comm::Communicator::world();
  watch::RankPoll rank_poll{world};
  watch::RankState own{.rank = world.rank()};
  own.still = 2 * timeout.value();
  own.rests = true;
  EXPECT_TRUE(rank_poll.poll(own, timeout, [] {}).calm);
  own.rests = world.rank() != 0;
  EXPECT_FALSE(rank_poll.poll(own, timeout, [] {}).calm);
}

}  // namespace
}  // namespace isoscale::runner
