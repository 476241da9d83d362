// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/prepare_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/op_requirements.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Throws base::Error, which names the op and `types`, if there is no kernel for the call.
template <class KernelCall>
void require_kernel(const KernelCall& call, const char* op,
                    std::initializer_list<program::DType> types) {
  if (has_kernel(call)) return;
  std::string names;
  for (const program::DType type : types) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", program::name(type));
  }
  throw base::Error(fmt::format("the CUDA executor has no {} of {}", op, names));
}

void require_same(program::DType a, program::DType b, const char* what) {
  if (a == b) return;
  throw base::Error(
      fmt::format("{} differ in type: {} and {}", what, program::name(a), program::name(b)));
}

void set_adam(const Resolver& resolver, const program::Update& op, UpdateCall& call) {
  for (const program::Slice* state : {&op.moment1, &op.moment2, &op.powers}) {
    require_same(resolver.dtype(*state), call.state, "moments or powers, and the weight");
  }
  if (op.moment1.count != op.weight.count || op.moment2.count != op.weight.count) {
    throw base::Error("the moments of an Adam update have not as many elements as the weight");
  }
  if (op.powers.count != 2) throw base::Error("the powers of an Adam update are two numbers");
  call.moment1 = on_device(resolver, op.moment1, "moment 1");
  call.moment2 = on_device(resolver, op.moment2, "moment 2");
  call.powers = on_device(resolver, op.powers, "the powers");
}

}  // namespace

Call prepare_op(const Resolver& resolver, const program::Collective& op, ncclComm_t communicator,
                void* barrier) {
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

Call prepare_op(const Resolver& resolver, const program::Exchange& op,
                const Communicators& communicators) {
  // The messages are ordered by link. A group starts one kernel per communicator, in NCCL's own
  // order or in that of the calls; the order must be the same on all ranks, or ranks could wait for
  // each other around a ring. The messages of two ranks on one communicator are matched by their
  // order.
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

/// A copy of many pieces is done by one kernel if the kernel reaches both sides: CUDA would need a
/// call for each matrix, or even for each row.
Call prepare_op(const Resolver& resolver, const program::Copy& op) {
  const StridedCopy copy = strided_copy(resolver, op);
  const bool is_kernel = copy.rows * copy.batch > 1 && is_on_device(resolver, op.src.slice) &&
                         is_on_device(resolver, op.dst.slice);
  if (is_kernel) return CopyCall{copy};
  return copy;
}

Call prepare_op(const Resolver& resolver, const program::Add& op) {
  AddCall call{.type = resolver.dtype(op.dst.slice),
               .rows = op.rows,
               .columns = op.columns,
               .a = on_device(resolver, op.a, op.rows, op.columns, "the first addend"),
               .b = on_device(resolver, op.b, op.rows, op.columns, "the second addend"),
               .dst = on_device(resolver, op.dst, op.rows, op.columns, "the sum"),
               .a_row = op.a.row_stride,
               .b_row = op.b.row_stride,
               .dst_row = op.dst.row_stride,
               .scale = op.scale};
  require_add(resolver, op);
  require_kernel(call, "add", {call.type});
  return call;
}

Call prepare_op(const Resolver& resolver, const program::Cast& op, unsigned int* largest) {
  if (!exists(op.dst) && !exists(op.transposed)) throw base::Error("a cast without a destination");
  const program::Slice& to = exists(op.dst) ? op.dst.slice : op.transposed.slice;
  CastCall call{.from = resolver.dtype(op.src.slice),
                .to = resolver.dtype(to),
                .rows = op.rows,
                .columns = op.columns,
                .src = on_device(resolver, op.src, op.rows, op.columns, "the source"),
                .src_row = op.src.row_stride,
                .dst_row = op.dst.row_stride,
                .transposed_row = op.transposed.row_stride,
                .scaling = op.scaling,
                .scale = op.scale,
                .target = op.target,
                .largest = largest};
  if (exists(op.dst)) {
    call.dst = on_device(resolver, op.dst, op.rows, op.columns, "the destination");
  }
  if (exists(op.transposed)) {
    require_same(resolver.dtype(op.transposed.slice), call.to, "the copies of a cast");
    call.transposed =
        on_device(resolver, op.transposed, op.columns, op.rows, "the transposed destination");
  }
  if (op.scaling == program::CastScale::amax) {
    const program::Slice one{.buffer = op.descale, .count = 1};
    require_same(resolver.dtype(one), program::DType::f32, "the scale of a cast and f32");
    call.descale = reinterpret_cast<float*>(on_device(resolver, one, "the scale of a cast"));
  }
  require_kernel(call, "cast", {call.from, call.to});
  return call;
}

units::Bytes host_fill_bytes(const Resolver& resolver, const program::Fill& op) {
  const program::Space space = resolver.space(op.dst);
  const bool is_host = space == program::Space::pinned || space == program::Space::pageable;
  return units::Bytes{is_host ? op.dst.count * resolver.element_size(op.dst) : 0};
}

Call prepare_op(const Resolver& resolver, const program::Fill& op, void* staging) {
  require_fill(resolver, op);
  const FillCall call{.type = resolver.dtype(op.dst),
                      .dst = resolver.address(op.dst),
                      .extents = op.shard.extents,
                      .local = op.shard.local,
                      .global = op.shard.global,
                      .first = op.shard.first(resolver.coordinates()),
                      .grid = grid_of(op),
                      .source = op.source,
                      .scale = program::power_of_two(op.exponent),
                      .value = op.value};
  const units::Bytes bytes = host_fill_bytes(resolver, op);
  if (bytes.value() == 0) return call;
  return HostFillCall{.fill = call,
                      .dst = static_cast<std::byte*>(call.dst),
                      .staging = static_cast<std::byte*>(staging),
                      .bytes = bytes.value()};
}

Call prepare_op(const Resolver& resolver, const program::Update& op, Powers powers) {
  const bool has_master = op.master.buffer != program::no_buffer;
  UpdateCall call{.optimizer = op.optimizer,
                  .state = resolver.dtype(has_master ? op.master : op.weight),
                  .gradient_type = resolver.dtype(op.gradient),
                  .weight_type = resolver.dtype(op.weight),
                  .powers_mode = powers,
                  .count = op.weight.count,
                  .weight = on_device(resolver, op.weight, "the weight"),
                  .master = has_master ? on_device(resolver, op.master, "the master") : nullptr,
                  .gradient = on_device(resolver, op.gradient, "the gradient"),
                  .gradient_scale = op.gradient_scale,
                  .rate = op.rate,
                  .beta1 = op.beta1,
                  .beta2 = op.beta2,
                  .epsilon = op.epsilon};
  if (op.gradient.count != op.weight.count || (has_master && op.master.count != op.weight.count)) {
    throw base::Error(
        fmt::format("gradient or master of an update has not the {} elements of the "
                    "weight",
                    op.weight.count));
  }
  if (op.optimizer == program::Optimizer::adam) set_adam(resolver, op, call);
  require_kernel(call, "update", {call.state, call.gradient_type, call.weight_type});
  return call;
}

Call prepare_op(const Resolver& resolver, const program::Checksum& op) {
  require_sum(resolver, op);
  // Pinned memory is allowed, although kernels reach it slowly, since checksums are not timed.
  if (resolver.space(op.src.slice) != program::Space::pinned) {
    require_on_device(resolver, op.src.slice, "what is summed up");
  }
  require_on_device(resolver, op.sum, "the checksum");
  return ChecksumCall{.type = resolver.dtype(op.src.slice),
                      .rows = op.rows,
                      .columns = op.columns,
                      .batch = op.batch,
                      .src = resolver.address(op.src, op.rows, op.columns, op.batch),
                      .row_stride = op.src.row_stride,
                      .batch_stride = op.src.batch_stride,
                      .sum = resolver.address(op.sum),
                      .flip = resolver.address_or_null(op.flip)};
}

Call prepare_op(const Resolver& resolver, const program::Advise& op) {
  const program::Space space = resolver.space(op.slice);
  if (space != program::Space::managed) {
    throw base::Error(
        fmt::format("advice about {} memory: only managed memory takes it", program::name(space)));
  }
  AdviseCall call{.memory = resolver.address(op.slice),
                  .bytes = op.slice.count * resolver.element_size(op.slice),
                  .advice = op.advice};
  check(cudaGetDevice(&call.device));
  return call;
}

}  // namespace isoscale::executor::cuda
