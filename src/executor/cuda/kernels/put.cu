// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/kernels.hpp"

#include <cuda/atomic>

#include "executor/cuda/kernels/launch.cuh"
#include "executor/cuda/kernels/nccl_versions.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr unsigned threads = 512;
constexpr unsigned looks_between_stops = 1024;  // polls between reads of `stop`, which are slow

using Word = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_system>;

/// Waits until `word`, in this GPU's memory, equals `value`; returns false if `stop` was set first.
__device__ bool wait_for(std::uint64_t& word, std::uint64_t value, const std::uint32_t* stop) {
  Word shared{word};
  for (unsigned looks = 1; shared.load(::cuda::memory_order_acquire) != value; ++looks) {
    if (looks % looks_between_stops == 0 && *static_cast<const volatile std::uint32_t*>(stop) != 0)
      return false;
  }
  return true;
}

__device__ PutChannel& channel_of_peer(const PutMessage& message) {
  return *static_cast<PutChannel*>(
      peer_address(message.window, message.peer_channel, message.peer));
}

/// Handles all receives of a call in one thread block: tells the senders that they may start, then
/// waits for the data.
__device__ void receive_all(const PutCall& call) {
  for (std::uint32_t i = threadIdx.x; i < call.receives; i += blockDim.x) {
    const PutMessage& message = call.messages[i];
    const std::uint64_t number = message.channel->received + message.number + 1;
    const std::uint32_t slot = number % put_slots;
    PutChannel& theirs = channel_of_peer(message);
    *static_cast<volatile std::uint64_t*>(&theirs.place[slot]) = message.place;
    __threadfence_system();
    Word{theirs.ready[slot]}.store(number, ::cuda::memory_order_release);
  }
  for (std::uint32_t i = threadIdx.x; i < call.receives; i += blockDim.x) {
    const PutMessage& message = call.messages[i];
    const std::uint64_t number = message.channel->received + message.number + 1;
    if (!wait_for(message.channel->arrived[number % put_slots], number, call.stop)) return;
  }
}

/// Copies the part of the data that thread block `part` of `parts` handles, in words of 16 bytes if
/// both addresses are multiples of 16.
__device__ void copy_part(const std::byte* from, std::byte* to, std::uint64_t bytes,
                          std::uint32_t part, std::uint32_t parts) {
  const std::uint64_t first = std::uint64_t{part} * blockDim.x + threadIdx.x;
  const std::uint64_t step = std::uint64_t{parts} * blockDim.x;
  const auto misaligned =
      (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) %
      sizeof(uint4);
  const std::uint64_t pieces = misaligned != 0 ? 0 : bytes / sizeof(uint4);
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  constexpr int unrolled = 8;  // words that a thread loads before it stores the first
  for (std::uint64_t i = first; i < pieces; i += unrolled * step) {
    uint4 values[unrolled];
#pragma unroll
    for (int k = 0; k < unrolled; ++k) {
      if (i + k * step < pieces) values[k] = source[i + k * step];
    }
#pragma unroll
    for (int k = 0; k < unrolled; ++k) {
      if (i + k * step < pieces) target[i + k * step] = values[k];
    }
  }
  for (std::uint64_t b = pieces * sizeof(uint4) + first; b < bytes; b += step) to[b] = from[b];
}

/// Sends part `part` of a message once the receiver is ready. The block that finishes last tells
/// the receiver that all data has arrived.
__device__ void send_part(const PutCall& call, std::uint32_t index, std::uint32_t part) {
  const PutMessage& message = call.messages[call.receives + index];
  const std::uint64_t number = message.channel->sent + message.number + 1;
  const std::uint32_t slot = number % put_slots;
  __shared__ std::byte* to;
  if (threadIdx.x == 0) {
    const bool is_ready = wait_for(message.channel->ready[slot], number, call.stop);
    const std::uint64_t place =
        *static_cast<const volatile std::uint64_t*>(&message.channel->place[slot]);
    to = is_ready ? static_cast<std::byte*>(peer_address(message.window, place, message.peer))
                  : nullptr;
  }
  __syncthreads();
  if (to == nullptr) return;
  copy_part(message.data, to, message.bytes, part, call.blocks_per_send);
  __threadfence_system();  // all stores of this thread come before the block counts as done
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (atomicAdd(&call.done[index], 1) + 1 < call.blocks_per_send) return;
  call.done[index] = 0;
  __threadfence_system();
  Word{channel_of_peer(message).arrived[slot]}.store(number, ::cuda::memory_order_release);
}

/// Adds the messages of this call to the channels' counts. Only the last block of the call runs it,
/// when no other block reads the counts any more.
__device__ void count_messages(const PutCall& call) {
  for (std::uint32_t i = threadIdx.x; i < call.receives + call.sends; i += blockDim.x) {
    const PutMessage& message = call.messages[i];
    if (message.number != 0) continue;
    (i < call.receives ? message.channel->received : message.channel->sent) += message.of_channel;
  }
}

/// Executes a call. Block 0, which the GPU schedules first, receives, so that no sender waits for a
/// block that is not yet scheduled.
__global__ void __launch_bounds__(threads) put(PutCall call) {
  if (blockIdx.x == 0) {
    receive_all(call);
  } else {
    send_part(call, (blockIdx.x - 1) / call.blocks_per_send,
              (blockIdx.x - 1) % call.blocks_per_send);
  }
  __syncthreads();
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(&call.done[call.sends], 1) + 1 == gridDim.x;
    __threadfence();
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x == 0) call.done[call.sends] = 0;
  count_messages(call);
}

}  // namespace

cudaError_t start(const PutCall& call, cudaStream_t stream) {
  if (call.receives + call.sends == 0) return cudaSuccess;
  start_kernel(put, 1 + call.sends * call.blocks_per_send, threads, stream, call);
  return cudaGetLastError();
}

}  // namespace isoscale::executor::cuda
