// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

/// Messages by put: the receiver tells where in its window a message goes; the sender stores it
/// there over the link and tells that it has arrived. It is a rendezvous, as ncclSend and ncclRecv
/// are.
namespace isoscale::executor::cuda {

/// The number of messages between two ranks that may be in flight in one direction at the same
/// time.
inline constexpr std::uint32_t put_slots = 64;

/// The state of a rank's messages to and from one other rank on one link; it is in the rank's
/// window and zero at first. Message n, from 1 on, of a direction uses slot n % put_slots. The peer
/// writes `ready`, `place` and `arrived`; each rank counts its own `sent` and `received`.
struct alignas(128) PutChannel {
  std::array<std::uint64_t, put_slots> ready{};    ///< number of a message the peer waits for ...
  std::array<std::uint64_t, put_slots> place{};    ///< ... and where in its window it shall go
  std::array<std::uint64_t, put_slots> arrived{};  ///< number of a message that has arrived
  std::uint64_t sent = 0, received = 0;            ///< messages of plays that have ended
};

/// One message. Offsets are bytes into the window of the named rank.
struct PutMessage {
  void* window = nullptr;          ///< NCCL's handle
  int peer = 0;                    ///< in the window's communicator
  std::uint32_t number = 0;        ///< among the messages of its channel and direction in this call
  std::uint32_t of_channel = 0;    ///< number of these messages
  std::byte* data = nullptr;       ///< on this rank: data to send, or where to receive it
  std::uint64_t place = 0;         ///< receives only: offset of `data` in this rank's window
  std::uint64_t bytes = 0;         ///< more than 0
  PutChannel* channel = nullptr;   ///< on this rank
  std::uint64_t peer_channel = 0;  ///< in the peer's window: its channel with this rank
};

/// Messages that start together and end together; all pointers are to device memory except `stop`,
/// which the host writes.
struct PutCall {
  const PutMessage* messages = nullptr;  ///< the received ones, then the sent ones
  std::uint32_t receives = 0, sends = 0;
  std::uint32_t blocks_per_send = 1;
  /// Counts the blocks that are done, for each sent message and for the call; zero between plays.
  std::uint32_t* done = nullptr;
  const std::uint32_t* stop = nullptr;  ///< not 0: peers may be gone, waits end
};
[[nodiscard]] cudaError_t start(const PutCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
