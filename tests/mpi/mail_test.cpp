// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/mail.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace isoscale::comm {
namespace {

constexpr units::Seconds patience{60};

std::byte mark(int number) { return static_cast<std::byte>(number); }

Envelope wait_for(const Mail& mail, int box) {
  while (true) {
    if (auto envelope = mail.take(box)) return *std::move(envelope);
  }
}

TEST(Mail, EmptyBoxesHoldNobodyUp) {
  const Mail mail{Communicator::world()};
  EXPECT_FALSE(mail.take(0));
  EXPECT_FALSE(mail.take(1));
}

TEST(Mail, LettersOfABoxKeepTheirOrder) {
  const Communicator world = Communicator::world();
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  Mail mail{world};
  constexpr int letters = 20;
  for (int i = 0; i < letters; ++i) mail.post(next, 3, std::array{mark(i)});
  mail.post(next, 2, {});
  EXPECT_TRUE(wait_for(mail, 2).letter.empty());  // not behind those of another box
  for (int i = 0; i < letters; ++i) {
    const Envelope envelope = wait_for(mail, 3);
    EXPECT_EQ(envelope.from, previous);
    EXPECT_EQ(envelope.letter, std::vector{mark(i)});
  }
  EXPECT_FALSE(mail.take(3));
  world.quiet_barrier();
}

TEST(Mail, ARankMayWriteToItself) {
  const Communicator world = Communicator::world();
  const Mail mail{world};
  mail.send(world.rank(), 0, std::array{mark(7)}, patience);
  const Envelope envelope = wait_for(mail, 0);
  EXPECT_EQ(envelope.from, world.rank());
  EXPECT_EQ(envelope.letter, std::vector{mark(7)});
}

/// Too long to go before somebody takes it, so it is read after its sender has left.
TEST(Mail, ALetterOutlivesTheMailThatPostedIt) {
  const Communicator world = Communicator::world();
  ASSERT_EQ(world.size() % 2, 0);
  constexpr std::size_t long_letter = 8 << 20;
  Mail mail{world};
  const bool writes = world.rank() % 2 == 0;
  if (writes) {
    mail.post(world.rank(), 0, std::array{mark(1)});
    static_cast<void>(wait_for(mail, 0));  // has gone, and must be forgotten
    mail.post(world.rank() + 1, 1, std::vector<std::byte>(long_letter, mark(5)));
    mail.abandon();
  }
  world.quiet_barrier();
  if (!writes) {
    const Envelope envelope = wait_for(mail, 1);
    EXPECT_EQ(envelope.from, world.rank() - 1);
    ASSERT_EQ(envelope.letter.size(), long_letter);
    EXPECT_TRUE(std::ranges::all_of(envelope.letter, [](std::byte b) { return b == mark(5); }));
    mail.abandon();  // whose peers are no longer there to free it with
  }
  world.quiet_barrier();
}

}  // namespace
}  // namespace isoscale::comm
