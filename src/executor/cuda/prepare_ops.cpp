// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/prepare.hpp"
#include "executor/op_requirements.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::cuda {
namespace {

/// True if CUDA can do the copy as one 2-D copy, which requires rows that do not overlap; otherwise
/// it is done row by row.
bool has_pitches(const StridedCopy& call) {
  return call.src_row >= call.row_bytes && call.dst_row >= call.row_bytes;
}

/// Starts the copy by one cudaMemcpyAsync per piece, or by one 2-D copy per matrix, between
/// memories of any kind.
void copy(const StridedCopy& call, cudaStream_t stream) {
  if (call.row_bytes == 0) return;
  const bool by_matrix = call.rows > 1 && has_pitches(call);
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* const src = call.src + b * call.src_batch;
    std::byte* const dst = call.dst + b * call.dst_batch;
    if (by_matrix) {
      check(cudaMemcpy2DAsync(dst, call.dst_row, src, call.src_row, call.row_bytes, call.rows,
                              cudaMemcpyDefault, stream));
      continue;
    }
    for (std::size_t row = 0; row < call.rows; ++row) {
      check(cudaMemcpyAsync(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes,
                            cudaMemcpyDefault, stream));
    }
  }
}

using program::Advice;

/// Advice about `bytes` of managed memory. A prefetch runs on the stream; other advice takes effect
/// before give() returns.
struct AdviseCall {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  Advice advice = Advice::prefetch_device;
  int device = 0;
};

// CUDA 13 names memory places by cudaMemLocation; earlier versions name them by device numbers.
#if CUDART_VERSION >= 13000
using Place = cudaMemLocation;
Place on_gpu(int device) { return {.type = cudaMemLocationTypeDevice, .id = device}; }
Place on_host() { return {.type = cudaMemLocationTypeHost, .id = 0}; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, 0, stream);
}
#else
using Place = int;
Place on_gpu(int device) { return device; }
Place on_host() { return cudaCpuDeviceId; }
cudaError_t prefetch(const AdviseCall& call, Place place, cudaStream_t stream) {
  return cudaMemPrefetchAsync(call.memory, call.bytes, place, stream);
}
#endif

void give(const AdviseCall& call, cudaStream_t stream) {
  if (call.bytes == 0) return;
  const bool is_host = call.advice == Advice::prefetch_host || call.advice == Advice::prefer_host;
  const Place place = is_host ? on_host() : on_gpu(call.device);
  const auto advise = [&](cudaMemoryAdvise advice) {
    check(cudaMemAdvise(call.memory, call.bytes, advice, place));
  };
  switch (call.advice) {
    case Advice::prefetch_device:
    case Advice::prefetch_host:
      return check(prefetch(call, place, stream));
    case Advice::read_mostly:
      return advise(cudaMemAdviseSetReadMostly);
    case Advice::unset_read_mostly:
      return advise(cudaMemAdviseUnsetReadMostly);
    case Advice::prefer_device:
    case Advice::prefer_host:
      return advise(cudaMemAdviseSetPreferredLocation);
    case Advice::unset_preferred:
      return advise(cudaMemAdviseUnsetPreferredLocation);
  }
}

/// Looks up the operands of an op, which must lie in memory that kernels reach.
template <class Op>
Arguments<Op> arguments(const Resolver& resolver, const Op& op) {
  return arguments_of(resolver, op, [&](const TypedOperand& operand, const program::Slice& slice) {
    if (std::is_same_v<Op, program::Fill>) return;  // fills of host memory use staging
    if constexpr (std::is_same_v<Op, program::Checksum>) {
      // A checksum may read pinned memory, although kernels reach it slowly, since checksums are
      // not timed.
      const bool is_source = operand.elements == program::Elements::common;
      if (is_source && resolver.space(slice) == program::Space::pinned) return;
    }
    require_on_device(resolver, slice, operand.name);
  });
}

/// Throws base::Error, which names the types, if there is no kernel for the op.
template <class Op>
void require_kernel(const Arguments<Op>& call) {
  if (has_kernel(call)) return;
  if constexpr (requires { call.op.keep; }) {
    if (call.op.block > most_per_list_block) {
      throw base::Error(
          fmt::format("lists over blocks of {} elements: the CUDA executor has them up to {}",
                      call.op.block, most_per_list_block));
    }
  }
  std::set<std::string_view> types;
  for (const OperandAt& at : call.operands) {
    if (at.data != nullptr) types.insert(program::name(at.type));
  }
  throw base::Error(fmt::format("the CUDA executor has no {} of {}",
                                program::name(program::kind_of(call.op)), fmt::join(types, ", ")));
}

/// Prepares an op that neither communicates nor is a GEMM.
class LocalOp {
 public:
  LocalOp(const Resolver& resolver, const LocalArguments& further)
      : resolver_(resolver), further_(further) {}

  /// A copy of many pieces is done by one kernel if the kernel reaches both sides: CUDA would need
  /// a call for each matrix, or even for each row.
  Launch operator()(const program::Copy& op) const {
    const StridedCopy pieces = strided_copy(resolver_, op);
    const bool is_kernel = pieces.rows * pieces.batch > 1 &&
                           is_on_device(resolver_, op.src.slice) &&
                           is_on_device(resolver_, op.dst.slice);
    if (is_kernel) return [pieces](cudaStream_t stream) { check(start(pieces, stream)); };
    return [pieces](cudaStream_t stream) { copy(pieces, stream); };
  }
  Launch operator()(const program::Cast& op) const {
    Arguments<program::Cast> call = arguments(resolver_, op);
    call.largest = further_.largest;
    return kernel(std::move(call));
  }
  /// For a fill of host memory, the kernel fills staging memory on the GPU, which is then copied,
  /// so that elements are the same as in a fill of GPU memory.
  Launch operator()(const program::Fill& op) const {
    Arguments<program::Fill> call = arguments(resolver_, op);
    const std::size_t bytes = host_fill_bytes(resolver_, op).value();
    if (bytes == 0) return kernel(std::move(call));
    std::byte* const staging = static_cast<std::byte*>(further_.staging);
    std::byte* const dst = std::exchange(call.at(&program::Fill::dst).data, staging);
    return [call, dst, staging, bytes](cudaStream_t stream) {
      // Elements of the slice that are not in the shard must keep their values, so they are copied
      // too.
      check(cudaMemcpyAsync(staging, dst, bytes, cudaMemcpyDefault, stream));
      check(start(call, stream));
      check(cudaMemcpyAsync(dst, staging, bytes, cudaMemcpyDefault, stream));
    };
  }
  Launch operator()(const program::Update& op) const {
    Arguments<program::Update> call = arguments(resolver_, op);
    call.powers = further_.powers;
    return kernel(std::move(call));
  }
  Launch operator()(const program::Rows& op) const {
    Arguments<program::Rows> call = arguments(resolver_, op);
    call.from = further_.from;
    call.op.from = std::vector<std::uint32_t>{};  // freed, as kernels read a copy on the GPU
    return kernel(std::move(call));
  }
  Launch operator()(const program::Advise& op) const {
    const program::Space space = resolver_.space(op.slice);
    if (space != program::Space::managed) {
      throw base::Error(fmt::format("advice about {} memory: only managed memory takes it",
                                    program::name(space)));
    }
    AdviseCall call{.memory = resolver_.address(op.slice),
                    .bytes = op.slice.count * resolver_.element_size(op.slice),
                    .advice = op.advice};
    check(cudaGetDevice(&call.device));
    return [call](cudaStream_t stream) { give(call, stream); };
  }
  template <class Op>
  Launch operator()(const Op& op) const {
    if constexpr (std::is_same_v<Op, program::Gemm> || std::is_same_v<Op, program::Collective> ||
                  std::is_same_v<Op, program::Exchange>) {
      throw std::logic_error("this op has a call of its own");
    } else {
      return kernel(arguments(resolver_, op));
    }
  }

 private:
  template <class Op>
  static Launch kernel(Arguments<Op> call) {
    require_kernel(call);
    return [call = std::move(call)](cudaStream_t stream) { check(start(call, stream)); };
  }

  const Resolver& resolver_;
  const LocalArguments& further_;
};

}  // namespace

void launch(const Call& call, cudaStream_t stream) {
  std::visit(
      [stream]<class Kind>(const Kind& one) {
        if constexpr (std::is_same_v<Kind, Launch>) {
          one(stream);
        } else if constexpr (std::is_same_v<Kind, PutCall>) {
          check(start(one, stream));
        } else {
          launch(one, stream);
        }
      },
      call);
}

CollectiveCall collective_call(const Resolver& resolver, const program::Collective& op,
                               ncclComm_t communicator, void* barrier) {
  CollectiveCall call{.kind = op.kind,
                      .data = resolve(resolver, op),
                      .communicator = communicator,
                      .operation = nccl_operation(op.reduction),
                      .root = op.root,
                      .send_counts = op.send_counts,
                      .receive_counts = op.receive_counts};
  if (op.kind == program::CollectiveKind::barrier) {
    call.data.send = call.data.receive = static_cast<std::byte*>(barrier);
    call.data.count = 1;
    return call;
  }
  for (const program::Slice* slice : {&op.send, &op.receive}) {
    if (slice->buffer != program::no_buffer) require_on_device(resolver, *slice, "what travels");
  }
  call.type = nccl_type(call.data.type);
  require_possible(call);
  return call;
}

ExchangeCall exchange_call(const Resolver& resolver, const program::Exchange& op,
                           const Communicators& communicators) {
  // The messages are ordered by link for two reasons. A group starts one kernel per communicator,
  // in NCCL's own order or in the order of the calls. This order must be the same on all ranks, or
  // ranks could wait for each other in a cycle. Messages between two ranks on one communicator are
  // also matched by their order.
  ExchangeCall call;
  for (const program::Transfer& transfer :
       transfers_by_link(resolver.mesh(), resolver.rank(), op)) {
    const LinkKind kind =
        link_kind(resolver.mesh(), resolver.rank(), transfer.axis, transfer.offset);
    const int peer =
        mesh::neighbour(resolver.mesh(), resolver.rank(), transfer.axis, transfer.offset);
    call.messages.push_back({.direction = transfer.direction,
                             .data = on_device(resolver, transfer.slice, "what travels"),
                             .count = transfer.slice.count,
                             .type = nccl_type(resolver.dtype(transfer.slice)),
                             .peer = mesh::group_index(resolver.mesh(), peer, transfer.axis),
                             .communicator = communicators.link(kind)});
  }
  return call;
}

units::Bytes host_fill_bytes(const Resolver& resolver, const program::Fill& op) {
  const program::Space space = resolver.space(op.dst);
  const bool is_host = space == program::Space::pinned || space == program::Space::pageable;
  return units::Bytes{is_host ? op.dst.count * resolver.element_size(op.dst) : 0};
}

Launch prepare_local(const Resolver& resolver, const program::Payload& op,
                     const LocalArguments& further) {
  return std::visit(LocalOp{resolver, further}, op);
}

DeviceMemory upload(const std::vector<std::uint32_t>& words) {
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  DeviceMemory memory = allocate_device(units::Bytes{bytes});
  if (bytes > 0) check(cudaMemcpy(memory.get(), words.data(), bytes, cudaMemcpyDefault));
  return memory;
}

}  // namespace isoscale::executor::cuda
