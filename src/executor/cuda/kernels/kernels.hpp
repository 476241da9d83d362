// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "executor/operand_addresses.hpp"
#include "program/op.hpp"

/// The functions start() launch the kernels of compute ops. The last one launches the kernel that
/// sends messages by puts, which are writes into the receiver's memory. All operands must be in
/// memory that the device can access. Each function returns immediately, with an error if the
/// launch failed.
namespace isoscale::executor::cuda {

/// Copies all rows of all matrices with one kernel. Both sides must be in memory that the device
/// can access. Rows of the source may overlap.
[[nodiscard]] cudaError_t start(const StridedCopy& pieces, cudaStream_t stream);
/// Fills elements of any type with a constant, or with random numbers that are a function of the
/// op's key and of an element's index in the whole tensor. The values are the same as on the host,
/// bit by bit.
[[nodiscard]] cudaError_t start(const Arguments<program::Fill>& call, cudaStream_t stream);
/// Adds f64, f32, f16, bf16 and integers; narrow types are computed in f32.
[[nodiscard]] cudaError_t start(const Arguments<program::Add>& call, cudaStream_t stream);
/// Casts f64, f32, f16 and bf16 to each other and to the fp8 types e4m3 and e5m2. Values too large
/// for an fp8 type saturate.
[[nodiscard]] cudaError_t start(const Arguments<program::Cast>& call, cudaStream_t stream);
/// Updates weights. Either all types are f64, or gradient and weight are f32, f16 or bf16 and the
/// state is f32. The state is the master copy (the weight if there is none), the moments and the
/// powers.
[[nodiscard]] cudaError_t start(const Arguments<program::Update>& call, cudaStream_t stream);
/// Computes the checksum of elements of any type.
[[nodiscard]] cudaError_t start(const Arguments<program::Checksum>& call, cudaStream_t stream);

// Norms, activations and softmax compute f64 in f64, and f32, f16 and bf16 in f32; each result is
// rounded once, when it is stored.

[[nodiscard]] cudaError_t start(const Arguments<program::Norm>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::NormGradient>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::Activation>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::ActivationGradient>& call,
                                cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::Softmax>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::SoftmaxGradient>& call,
                                cudaStream_t stream);

// Select, Spread and Rows take f64, f32, f16 and bf16. Spread and Rows add all terms of an element
// before they round the sum; Rows multiplies it by its scale before that.

[[nodiscard]] cudaError_t start(const Arguments<program::Select>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::Spread>& call, cudaStream_t stream);
[[nodiscard]] cudaError_t start(const Arguments<program::Rows>& call, cudaStream_t stream);

/// The largest number of elements in a block of a Select or Spread: a thread block keeps them all
/// in shared memory.
inline constexpr std::uint32_t most_per_list_block = 4096;

/// True if there is a kernel for the types of an op and, for a Select or Spread, for its block
/// size.
template <class Op>
[[nodiscard]] bool has_kernel(const Arguments<Op>& call) {
  using program::DType;
  const auto is_float = [](DType type) {
    return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
  };
  const auto is_fp8 = [](DType type) { return type == DType::e4m3 || type == DType::e5m2; };
  if constexpr (std::is_same_v<Op, program::Fill> || std::is_same_v<Op, program::Checksum>) {
    return true;
  } else if constexpr (std::is_same_v<Op, program::Add>) {
    return !is_fp8(call.type);
  } else if constexpr (std::is_same_v<Op, program::Cast>) {
    const bool has_plain = call[&Op::dst].data != nullptr;
    const DType to = call[has_plain ? &Op::dst : &Op::transposed].type;
    const bool is_one_type =
        !has_plain || call[&Op::transposed].data == nullptr || call[&Op::transposed].type == to;
    return is_float(call[&Op::src].type) && (is_float(to) || is_fp8(to)) && is_one_type;
  } else if constexpr (std::is_same_v<Op, program::Update>) {
    const DType state = call[call[&Op::master].data != nullptr ? &Op::master : &Op::weight].type;
    const OperandAt powers = call[&Op::powers];
    if (powers.data != nullptr && powers.type != state) return false;
    const auto fits = [&](DType type) {
      return is_float(type) && (type == DType::f64) == (state == DType::f64);
    };
    if (!fits(call[&Op::gradient].type) || !fits(call[&Op::weight].type)) return false;
    return state == DType::f64 || state == DType::f32;
  } else {
    if constexpr (requires { call.op.keep; }) {
      if (call.op.block > most_per_list_block) return false;
    }
    return is_float(call.type);
  }
}

// A put is a message that the sender's kernel writes into the receiver's memory. The receiver tells
// the sender the offset of a message in the receiver's window; the sender's kernel stores the data
// there over the link and then sets a flag. This is a rendezvous, like ncclSend and ncclRecv.

/// The largest number of messages from one rank to another on one link that may be in flight at
/// the same time.
inline constexpr std::uint32_t put_slots = 64;

/// The state of a rank's messages to and from one other rank on one link. It lies in the rank's
/// window and starts as zeros. In each direction, message n (from 1 on) uses slot n % put_slots.
/// The peer writes `ready`, `place` and `arrived`; the rank itself counts `sent` and `received`.
struct alignas(128) PutChannel {
  std::array<std::uint64_t, put_slots> ready{};    ///< by slot: number of the message that the peer
                                                   ///< is ready to receive
  std::array<std::uint64_t, put_slots> place{};    ///< by slot: offset of that message in the
                                                   ///< peer's window
  std::array<std::uint64_t, put_slots> arrived{};  ///< by slot: number of the message that has
                                                   ///< arrived
  std::uint64_t sent = 0, received = 0;            ///< number of messages in calls that have ended
};

/// One message. Offsets are bytes into the window of a rank.
struct PutMessage {
  void* window = nullptr;         ///< NCCL's handle of the window
  int peer = 0;                   ///< rank in the window's communicator
  std::uint32_t number = 0;       ///< index among this call's messages of its channel and direction
  std::uint32_t of_channel = 0;   ///< how many messages this call has of its channel and direction
  std::byte* data = nullptr;      ///< this rank's data to send, or where to receive
  std::uint64_t place = 0;        ///< receives only: offset of `data` in this rank's window
  std::uint64_t bytes = 0;        ///< more than 0
  PutChannel* channel = nullptr;  ///< this rank's channel with the peer
  std::uint64_t peer_channel = 0;  ///< offset of the peer's channel in its window
};

/// Messages that one kernel sends and receives. All pointers are to device memory, except for
/// `stop`, which points to host memory that the host writes.
struct PutCall {
  const PutMessage* messages = nullptr;  ///< first the received, then the sent ones
  std::uint32_t receives = 0, sends = 0;
  std::uint32_t blocks_per_send = 1;
  /// Counts the blocks that are done: one word for each sent message, then one for the whole call.
  /// The words are 0 before the kernel starts, and again when it has ended.
  std::uint32_t* done = nullptr;
  const std::uint32_t* stop = nullptr;  ///< waits end if *stop is not 0: peers may be gone
};
[[nodiscard]] cudaError_t start(const PutCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
