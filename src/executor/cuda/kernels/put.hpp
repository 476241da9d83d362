// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

/// Sends messages by puts. The receiver tells the sender the offset of a message in the receiver's
/// window; the sender's kernel stores the data there over the link and then sets a flag. This is a
/// rendezvous, like ncclSend and ncclRecv.
namespace isoscale::executor::cuda {

/// The largest number of messages from one rank to another that may be in flight at the same time.
inline constexpr std::uint32_t put_slots = 64;

/// The state of a rank's messages to and from one other rank on one link. It lies in the rank's
/// window and starts as zeros. In each direction, message n (from 1 on) uses slot n % put_slots.
/// The peer writes `ready`, `place` and `arrived`; the rank itself counts `sent` and `received`.
struct alignas(128) PutChannel {
  std::array<std::uint64_t, put_slots> ready{};    ///< number of a message the peer can receive
  std::array<std::uint64_t, put_slots> place{};    ///< offset of that message in the peer's window
  std::array<std::uint64_t, put_slots> arrived{};  ///< number of a message that has arrived
  std::uint64_t sent = 0, received = 0;            ///< number of messages in calls that have ended
};

/// One message. Offsets are bytes into the window of a rank.
struct PutMessage {
  void* window = nullptr;    ///< NCCL's handle
  int peer = 0;              ///< in the window's communicator
  std::uint32_t number = 0;  ///< position among this call's messages, same channel and direction
  std::uint32_t of_channel = 0;    ///< number of this call's messages, same channel and direction
  std::byte* data = nullptr;       ///< on this rank: data to send, or destination
  std::uint64_t place = 0;         ///< receives only: offset of `data` in this rank's window
  std::uint64_t bytes = 0;         ///< more than 0
  PutChannel* channel = nullptr;   ///< on this rank
  std::uint64_t peer_channel = 0;  ///< in the peer's window: its channel with this rank
};

/// Messages that start together and end together. All pointers are to device memory, except for
/// `stop`, which is host memory that the host writes.
struct PutCall {
  const PutMessage* messages = nullptr;  ///< those to receive, then those to send
  std::uint32_t receives = 0, sends = 0;
  std::uint32_t blocks_per_send = 1;
  /// Counts the blocks that are done: one word for each sent message, then one for the call; zero
  /// between plays.
  std::uint32_t* done = nullptr;
  const std::uint32_t* stop = nullptr;  ///< not 0: end all waits, since peers may be gone
};
[[nodiscard]] cudaError_t start(const PutCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
