// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The put kernel of several ranks, whose blocks all play at the same time.

#include "tests/cuda/kernel_shim/fibers.hpp"
#include "tests/cuda/kernel_shim/shipped.hpp"

namespace isoscale::kernel_shim {
namespace {

using namespace executor::cuda;  // NOLINT: the calls

constexpr std::size_t area = 160000;  // bytes of a window to send from, and as many to receive in

/// A window: a channel for each peer, what is sent, and where messages go.
struct Window {
  explicit Window(std::size_t ranks) : channels(ranks), bytes(2 * area) {}
  std::vector<PutChannel> channels;
  std::vector<std::byte> bytes;
};

/// Ranks around a ring, each of which sends `sizes` to the next one, in one call.
class Ring {
 public:
  Ring(std::size_t ranks, std::vector<std::uint64_t> sizes) : sizes_(std::move(sizes)) {
    for (std::size_t rank = 0; rank < ranks; ++rank) windows_.emplace_back(ranks);
    for (Window& window : windows_) {
      bases_.push_back(reinterpret_cast<std::byte*>(window.channels.data()));
    }
  }

  /// Each rank's messages, from and to places that need not be aligned.
  [[nodiscard]] std::vector<PutMessage> messages_of(std::size_t rank) {
    const std::size_t ranks = windows_.size();
    std::vector<PutMessage> messages;
    for (const bool receives : {true, false}) {
      const std::size_t peer = (rank + (receives ? ranks - 1 : 1)) % ranks;
      std::size_t at = receives ? area : 0;
      for (std::uint32_t i = 0; i < sizes_.size(); ++i) {
        messages.push_back({.window = bases_.data(),
                            .peer = static_cast<int>(peer),
                            .number = i,
                            .of_channel = static_cast<std::uint32_t>(sizes_.size()),
                            .data = windows_[rank].bytes.data() + at,
                            .place = offset(rank, windows_[rank].bytes.data() + at),
                            .bytes = sizes_[i],
                            .channel = &windows_[rank].channels[peer],
                            .peer_channel = rank * sizeof(PutChannel)});
        at += sizes_[i];
      }
    }
    return messages;
  }

  /// The first `players` ranks.
  void play(std::size_t players, std::uint32_t blocks_per_send, const std::uint32_t& stop) {
    const auto count = static_cast<std::uint32_t>(sizes_.size());
    std::vector<std::vector<PutMessage>> messages;
    std::vector<std::vector<std::uint32_t>> done;
    for (std::size_t rank = 0; rank < players; ++rank) {
      messages.push_back(messages_of(rank));
      done.emplace_back(count + 1);
    }
    play_together([&] {
      for (std::size_t rank = 0; rank < players; ++rank) {
        EXPECT_EQ(start(PutCall{.messages = messages[rank].data(),
                                .receives = count,
                                .sends = count,
                                .blocks_per_send = blocks_per_send,
                                .done = done[rank].data(),
                                .stop = &stop},
                        nullptr),
                  cudaSuccess);
      }
    });
    EXPECT_EQ(take_failure(), "");
    for (const auto& counters : done) {
      EXPECT_EQ(std::ranges::count(counters, 0U), count + 1);  // as they were found
    }
  }

  std::vector<Window>& windows() { return windows_; }

 private:
  [[nodiscard]] std::uint64_t offset(std::size_t rank, const std::byte* place) const {
    return static_cast<std::uint64_t>(reinterpret_cast<std::intptr_t>(place) -
                                      reinterpret_cast<std::intptr_t>(bases_[rank]));
  }

  std::vector<std::uint64_t> sizes_;
  std::vector<Window> windows_;
  std::vector<std::byte*> bases_;
};

TEST(ShippedPut, MessagesArriveWholeAndInTheirTurn) {
  constexpr std::uint32_t running = 0;
  for (const std::size_t ranks : {2U, 3U}) {
    // The first message is longer than what one or two blocks copy at a time.
    constexpr std::size_t largest = 150000;
    Ring ring{ranks, {largest, 1, 4099}};
    // More plays than a channel has slots for messages, so that the numbers go around once.
    for (std::size_t play = 0; play < 3 + put_slots / 3; ++play) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < area; ++i) {
          ring.windows()[rank].bytes[i] = static_cast<std::byte>(i * 7 + rank * 31 + play);
        }
      }
      ring.play(ranks, 1 + static_cast<std::uint32_t>(play % 2), running);
      if (HasFailure()) return;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        constexpr std::size_t sent = largest + 1 + 4099;
        const std::vector<std::byte>& mine = ring.windows()[rank].bytes;
        const std::vector<std::byte>& theirs = ring.windows()[(rank + ranks - 1) % ranks].bytes;
        EXPECT_TRUE(std::equal(theirs.begin(), theirs.begin() + sent, mine.begin() + area));
        EXPECT_EQ(std::ranges::count(mine.begin() + area + sent, mine.end(), std::byte{0}),
                  area - sent);
      }
    }
  }
}

TEST(ShippedPut, ARankWithoutPeersEndsWhenItIsStopped) {
  constexpr std::uint32_t stopped = 1;
  Ring ring{2, {100}};
  ring.play(1, 2, stopped);
  const std::vector<std::byte>& theirs = ring.windows()[1].bytes;
  EXPECT_EQ(std::ranges::count(theirs, std::byte{0}), 2 * area);
}

}  // namespace
}  // namespace isoscale::kernel_shim
