// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <bit>
#include <chrono>
#include <ctime>
#include <thread>

#include "base/text.hpp"
#include "comm/clock_offset.hpp"
#include "comm/message_queue.hpp"
#include "tests/unit/matchers.hpp"

namespace {
int receives = 0;  ///< messages that this rank has taken, see MPI_Recv below
}

/// Stands before the library's own, as MPI's profiling interface has it, and counts.
extern "C" int MPI_Recv(void* data, int count, MPI_Datatype type, int source, int tag,
                        MPI_Comm communicator, MPI_Status* status) {
  ++receives;
  return PMPI_Recv(data, count, type, source, tag, communicator, status);
}

namespace isoscale::comm {
namespace {

class InWorld : public testing::Test {
 protected:
  const Communicator world = Communicator::world();
};

TEST_F(InWorld, CheckThrowsWithTheTextOfMpi) {
  EXPECT_NO_THROW(check(MPI_SUCCESS));
  EXPECT_THAT([] { check(MPI_ERR_TRUNCATE); },
              testing::ThrowsMessage<MpiError>(HasSubstr("truncated")));
  const int nobody = world.size();
  EXPECT_THROW(check(MPI_Send(nullptr, 0, MPI_BYTE, nobody, 0, world.get())), MpiError);
}

TEST(Environment, NamesTheLibraryInOneLine) {
  const std::string version = Environment::library_version();
  EXPECT_FALSE(version.empty());
  EXPECT_EQ(version.find('\0'), std::string::npos);  // which a file would not keep
  EXPECT_TRUE(base::is_plain(version)) << version;
}

TEST_F(InWorld, CommunicatorSplitsByColourAndKey) {
  const int parity = world.rank() % 2;
  const auto half = world.split(parity, -world.rank());  // reversed order
  EXPECT_EQ(half.size(), (world.size() + 1 - parity) / 2);
  // The last rank of a parity comes first.
  EXPECT_EQ(half.broadcast(std::int64_t{world.rank()}), (half.size() - 1) * 2 + parity);
}

TEST_F(InWorld, CommunicatorNegativeColourGivesNoneAndAnAbandonedOneIsEmpty) {
  const auto first_alone = world.split(world.rank() == 0 ? 0 : -1, 0);
  EXPECT_EQ(static_cast<bool>(first_alone), world.rank() == 0);
  EXPECT_EQ(first_alone.size(), 1);
  auto copy = world.duplicate();
  copy.abandon();
  EXPECT_FALSE(static_cast<bool>(copy));
}

TEST_F(InWorld, CommunicatorBroadcastsText) {
  const int root = world.size() - 1;
  std::string long_text(200'000, 'x');
  long_text.back() = '!';
  EXPECT_EQ(world.broadcast(world.rank() == root ? long_text : "other", root), long_text);
  EXPECT_EQ(world.broadcast(world.rank() == 0 ? "" : "other"), "");
}

TEST_F(InWorld, CommunicatorGathersPartsOfAnySize) {
  // Ranks 0, 2, 5 and so on have nothing, the others 100 kB and more: above what MPI sends unasked.
  const auto length_of = [](int rank) {
    return rank % 3 == 2 ? 0 : static_cast<std::size_t>(rank) * 100'003;
  };
  const std::vector<std::byte> part(length_of(world.rank()),
                                    static_cast<std::byte>(world.rank() + 1));
  const auto parts = world.gather(part);
  if (world.rank() != 0) {
    EXPECT_TRUE(parts.empty());
    return;
  }
  EXPECT_EQ(parts.size(), static_cast<std::size_t>(world.size()));
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto& theirs = parts[static_cast<std::size_t>(rank)];
    EXPECT_EQ(theirs.size(), length_of(rank));
    EXPECT_TRUE(std::ranges::all_of(
        theirs, [&](std::byte b) { return b == static_cast<std::byte>(rank + 1); }));
  }
}

TEST_F(InWorld, CommunicatorGathersMoreThanOneBlock) {
  if (world.size() > 2) GTEST_SKIP() << "enough memory for two ranks only";
  std::vector<std::byte> part(world.rank() == 1 ? block_bytes + 5 : 0);
  if (!part.empty()) part[block_bytes + 4] = std::byte{7};
  const auto parts = world.gather(part);
  if (world.rank() != 0) return;
  EXPECT_EQ(parts[1].size(), block_bytes + 5);
  EXPECT_EQ(parts[1].back(), std::byte{7});
}

TEST_F(InWorld, GatherTakesTextsAlongATree) {
  const auto text_of = [](std::size_t rank) { return std::string(rank % 3, 'a' + char(rank)); };
  const int before = receives;
  const auto texts = world.gather(text_of(static_cast<std::size_t>(world.rank())));
  // Two messages from each that hands on to this rank: the size, and what is there.
  EXPECT_LE(receives - before, 2 * std::bit_width(static_cast<unsigned>(world.size() - 1)));
  EXPECT_EQ(texts.size(), world.rank() == 0 ? static_cast<std::size_t>(world.size()) : 0U);
  EXPECT_GE(receives - before, world.rank() == 0 ? 1 : 0);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) EXPECT_EQ(texts[rank], text_of(rank));
}

TEST(Blocks, AreBoundedAndCoverAll) {
  std::vector<std::byte> data(2 * block_bytes + 1);
  const auto parts = blocks(std::span{data});
  EXPECT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].size(), block_bytes);
  EXPECT_EQ(parts[2].size(), 1U);
  EXPECT_EQ(parts[2].data(), data.data() + 2 * block_bytes);
  EXPECT_TRUE(blocks(std::span<double>{}).empty());
}

TEST_F(InWorld, VoteLowestRankOfTheWorldWithAProblemSpeaks) {
  const Vote content = all_ok(world, "");
  EXPECT_TRUE(content.ok && content.why.empty());
  const Vote vote =
      all_ok(world, world.rank() == 0 ? "" : fmt::format("no memory on {}", world.rank()));
  EXPECT_FALSE(vote.ok);
  EXPECT_EQ(vote.why, "rank 1: no memory on 1");
  EXPECT_EQ(all_ok(world, vote.why).why, vote.why);
  EXPECT_EQ(all_ok(world, "rank of a matrix: 0").why, "rank 0: rank of a matrix: 0");
  const auto reversed = world.split(0, -world.rank());
  EXPECT_EQ(all_ok(reversed, "no memory").why, fmt::format("rank {}: no memory", world.size() - 1));
  EXPECT_EQ(reversed.world_rank(reversed.rank()), world.rank());
}

TEST_F(InWorld, QuietBarrierLetsNobodyPassBeforeAllHaveCome) {
  MPI_Win window = MPI_WIN_NULL;
  std::int64_t* arrived = nullptr;
  const bool is_first = world.rank() == 0;
  check(MPI_Win_allocate_shared(is_first ? sizeof *arrived : 0, sizeof *arrived, MPI_INFO_NULL,
                                world.get(), &arrived, &window));
  MPI_Aint bytes = 0;
  int unit = 0;
  check(MPI_Win_shared_query(window, 0, &bytes, &unit, &arrived));
  std::atomic_ref<std::int64_t> count{*arrived};
  if (is_first) count = 0;
  world.barrier();
  count.fetch_add(1);
  world.quiet_barrier(units::Seconds{0.001});
  EXPECT_EQ(count.load(), world.size());
  world.barrier();
  check(MPI_Win_free(&window));
}

TEST_F(InWorld, QuietBarrierSleepsWhileItWaits) {
  constexpr std::chrono::milliseconds wait{300};
  if (world.rank() == 0) std::this_thread::sleep_for(wait);
  const std::clock_t before = std::clock();
  world.quiet_barrier();
  // CPU time, not wall time: a machine under load does not change it.
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy, std::chrono::duration<double>(wait).count() / 3);
}

TEST_F(InWorld, ClockOfRanksOfOneKernelHasNoOffset) {
  if (clock_identity().empty()) GTEST_SKIP() << "the system does not name its clock";
  const ClockFit fit = ClockSync{world}.fit();
  EXPECT_EQ(fit.offset.value(), 0);
  EXPECT_EQ(fit.drift, 0);
  EXPECT_EQ(fit.error.value(), 0);
  EXPECT_EQ(fit.to_rank_0(units::Nanoseconds{123}).value(), 123);
}

/// Ranks that misread their clock by `fault` find out; all clocks of this test are one in truth.
void expect_found(const Communicator& world, std::optional<ClockFault> fault) {
  const ClockSync clocks{world, fault};
  const units::Nanoseconds begin = now();
  const auto end_of_sleep = std::chrono::steady_clock::now() + std::chrono::milliseconds{20};
  std::this_thread::sleep_until(end_of_sleep);
  const units::Nanoseconds end = now();
  const ClockFit fit = clocks.fit();
  for (const units::Nanoseconds time : {begin, begin + (end - begin) / 2, end}) {
    const units::Nanoseconds aligned = fit.to_rank_0(clocks.shown(time));
    EXPECT_LE(std::abs((aligned - time).value()), fit.error.value());
  }
  if (!clock_identity().empty()) {
    EXPECT_EQ(fit.error.value() > 0, fault.has_value());
  }
}

TEST_F(InWorld, ClockFaultsAreFoundWithinTheStatedError) {
  const units::Nanoseconds second{1'000'000'000}, step{5'000'000};
  for (const ClockFault& fault : {ClockFault{}, ClockFault{.offset = second, .drift = 50e-6},
                                  ClockFault{.offset = -1 * second, .drift = -50e-6}}) {
    expect_found(world, world.rank() == 1 ? std::optional{fault} : std::nullopt);
  }
  // Every rank may have a fault of its own.
  const ClockFault own{.offset = world.rank() * step, .drift = world.rank() * 10e-6};
  expect_found(world, world.rank() == 0 ? std::nullopt : std::optional{own});
}

TEST_F(InWorld, ClockFaultOfRankZeroIsSeenByAllOthers) {
  const ClockFault fault{.offset = units::Nanoseconds{5'000'000}};
  const ClockSync clocks{world, world.rank() == 0 ? std::optional{fault} : std::nullopt};
  const ClockFit fit = clocks.fit();
  const std::int64_t expected = world.rank() == 0 ? 0 : -5'000'000;
  EXPECT_LE(std::abs(fit.offset.value() - expected), fit.error.value());
}

std::byte mark(int number) { return static_cast<std::byte>(number); }

Message wait_for(const MessageQueue& queue, int tag) {
  while (true) {
    if (auto message = queue.take(tag)) return *std::move(message);
  }
}

TEST_F(InWorld, MessageQueueMessagesOfATagKeepTheirOrder) {
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

/// Too long to go before somebody takes it, so it is read after its sender has left.
TEST_F(InWorld, MessageQueueAMessageOutlivesTheQueueThatPostedIt) {
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
