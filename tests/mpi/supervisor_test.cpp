// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace isoscale::runner {
namespace {

using base::ExitCode;
using testing::HasSubstr;

constexpr units::Seconds timeout{0.5};

class Supervised : public testing::Test {
 protected:
  void SetUp() override { supervisor_->set_timeout(timeout); }

  const comm::Communicator world_ = comm::Communicator::world();
  HeldSignals signals_;
  /// A thread that was given up keeps it.
  const std::shared_ptr<Supervisor> supervisor_ =
      std::make_shared<Supervisor>(Supervisor::Setting{.world = world_, .signals = signals_});
};

/// Nothing moves for longer than the timeout, and then it ends after all.
TEST_F(Supervised, WhoWasGivenUpNeverGoesOn) {
  struct Told {
    std::atomic<bool> awake{false}, went_on{false};
  };
  const auto told = std::make_shared<Told>();
  const auto go_on = [this, told](const std::string& why, const comm::Communicator& world) {
    EXPECT_THAT(why, HasSubstr("hang: "));
    EXPECT_EQ(world.size(), world_.size());
    while (!told->awake) {
      supervisor_->activity().doing("waiting for who was given up");
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    return ExitCode::done;
  };
  const ExitCode code = supervisor_->watch([supervisor = supervisor_, told, go_on] {
    const std::uint64_t generation = supervisor->begin_point(go_on);
    std::this_thread::sleep_for(std::chrono::seconds{5});
    told->awake = true;
    supervisor->end_point(generation);
    told->went_on = true;
    return ExitCode::done;
  });
  EXPECT_EQ(code, ExitCode::hang);
  EXPECT_TRUE(supervisor_->gave_up());
  EXPECT_FALSE(told->went_on);
}

TEST_F(Supervised, WhatFailsInAPointIsGivenUp) {
  std::string reason;
  const ExitCode code = supervisor_->watch([&]() -> ExitCode {
    static_cast<void>(
        supervisor_->begin_point([&](const std::string& why, const comm::Communicator& /*world*/) {
          reason = why;
          return ExitCode::done;
        }));
    throw std::runtime_error("a broken point");
  });
  EXPECT_EQ(code, ExitCode::hang);
  EXPECT_THAT(reason, HasSubstr("a broken point"));
}

TEST_F(Supervised, WhatFailsOutsideOfPointsIsThrown) {
  EXPECT_THROW(static_cast<void>(supervisor_->watch([&]() -> ExitCode {
                 supervisor_->end_point(supervisor_->begin_point(nullptr));
                 throw std::runtime_error("all is broken");
               })),
               std::runtime_error);
}

/// What SIGUSR1 asks for has come by then; by itself it would kill.
TEST_F(Supervised, WhoHasEndedIsNotKilledByTheSignalToEndSoon) {
  EXPECT_EQ(supervisor_->watch([] { return ExitCode::done; }), ExitCode::done);
  EXPECT_EQ(raise(SIGUSR1), 0);
  EXPECT_FALSE(supervisor_->shall_end_soon());
}

/// Rank 0 calls; the others have been at one op for 0.7 of the timeout.
RankPoll::Result called_by(bool is_idle, const comm::Communicator& world) {
  RankPoll rank_poll{world};
  RankState own{.rank = world.rank()};
  own.rests = world.rank() == 0 && is_idle;
  own.still = timeout.value() * (world.rank() == 0 ? 1.1 : 0.7);
  RankPoll::Result result = rank_poll.poll(own, timeout, [] {});
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
  RankPoll rank_poll{world};
  RankState own{.rank = world.rank()};
  own.still = 2 * timeout.value();
  own.rests = true;
  EXPECT_TRUE(rank_poll.poll(own, timeout, [] {}).calm);
  own.rests = world.rank() != 0;
  EXPECT_FALSE(rank_poll.poll(own, timeout, [] {}).calm);
}

}  // namespace
}  // namespace isoscale::runner
