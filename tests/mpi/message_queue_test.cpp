// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/message_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace isoscale::comm {
namespace {

constexpr units::Seconds patience{60};

std::byte mark(int number) { return static_cast<std::byte>(number); }

Message wait_for(const MessageQueue& queue, int tag) {
  while (true) {
    if (auto message = queue.take(tag)) return *std::move(message);
  }
}

TEST(MessageQueue, MessagesOfATagKeepTheirOrder) {
  const Communicator world = Communicator::world();
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  MessageQueue queue{world};
  EXPECT_FALSE(queue.take(3));  // an empty one holds nobody up
  world.quiet_barrier();
  constexpr int messages = 20;
  for (int i = 0; i < messages; ++i) queue.post(next, 3, std::array{mark(i)});
  queue.post(next, 2, {});
  EXPECT_TRUE(wait_for(queue, 2).bytes.empty());  // not behind those of another tag
  for (int i = 0; i < messages; ++i) {
    const Message message = wait_for(queue, 3);
    EXPECT_EQ(message.from, previous);
    EXPECT_EQ(message.bytes, std::vector{mark(i)});
  }
  EXPECT_FALSE(queue.take(3));
  world.quiet_barrier();
}

TEST(MessageQueue, ARankMayWriteToItself) {
  const Communicator world = Communicator::world();
  const MessageQueue queue{world};
  queue.send(world.rank(), 0, std::array{mark(7)}, patience);
  const Message message = wait_for(queue, 0);
  EXPECT_EQ(message.from, world.rank());
  EXPECT_EQ(message.bytes, std::vector{mark(7)});
}

/// Too long to go before somebody takes it, so it is read after its sender has left.
TEST(MessageQueue, AMessageOutlivesTheQueueThatPostedIt) {
  const Communicator world = Communicator::world();
  ASSERT_EQ(world.size() % 2, 0);
  constexpr std::size_t long_message = 8 << 20;
  MessageQueue queue{world};
  const bool writes = world.rank() % 2 == 0;
  if (writes) {
    queue.post(world.rank(), 0, std::array{mark(1)});
    static_cast<void>(wait_for(queue, 0));  // has gone, and must be forgotten
    queue.post(world.rank() + 1, 1, std::vector<std::byte>(long_message, mark(5)));
    queue.abandon();
  }
  world.quiet_barrier();
  if (!writes) {
    const Message message = wait_for(queue, 1);
    EXPECT_EQ(message.from, world.rank() - 1);
    ASSERT_EQ(message.bytes.size(), long_message);
    EXPECT_TRUE(std::ranges::all_of(message.bytes, [](std::byte b) { return b == mark(5); }));
    queue.abandon();  // whose peers are no longer there to free it with
  }
  world.quiet_barrier();
}

}  // namespace
}  // namespace isoscale::comm
