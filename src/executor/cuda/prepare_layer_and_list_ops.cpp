// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "base/error.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/prepare_ops.hpp"
#include "executor/op_requirements.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::cuda {
namespace {

/// The matrices of one op, which all have the same extents; data is null where there is no buffer.
class OnDevice {
 public:
  template <class Op>
  OnDevice(const Resolver& resolver, const Op& op)
      : resolver_(resolver), rows_(op.rows), columns_(op.columns) {
    if constexpr (requires { op.batch; }) batch_ = op.batch;
  }

  [[nodiscard]] MatrixAt operator()(const program::Matrix& matrix) const {
    if (!program::exists(matrix)) return {};
    require_on_device(resolver_, matrix.slice, "an operand");
    return {.data = resolver_.address(matrix, rows_, columns_, batch_),
            .row_stride = matrix.row_stride,
            .batch_stride = matrix.batch_stride};
  }
  [[nodiscard]] void* operator()(const program::Slice& slice) const {
    require_on_device(resolver_, slice, "an operand");
    return resolver_.address(slice);
  }

 private:
  const Resolver& resolver_;
  std::uint64_t rows_, columns_, batch_ = 1;
};

template <class KernelCall, class Op>
Call if_there_is_a_kernel(const KernelCall& call, const Op& op) {
  if (has_kernel(call)) return call;
  throw base::Error(fmt::format("the CUDA executor has no {} of {}",
                                program::name(program::kind_of(program::Payload{op})),
                                program::name(call.type)));
}

std::int32_t* places_at(const Resolver& resolver, const program::Slice& places) {
  return reinterpret_cast<std::int32_t*>(on_device(resolver, places, "the places"));
}

void require_block(std::uint32_t block) {
  if (block <= most_per_list_block) return;
  throw base::Error(
      fmt::format("lists over blocks of {} elements: the CUDA executor has them up to {}", block,
                  most_per_list_block));
}

}  // namespace

Call prepare_op(const Resolver& resolver, const program::Norm& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(NormCall{.type = type_of(resolver, op),
                                       .rows = op.rows,
                                       .columns = op.columns,
                                       .x = at(op.x),
                                       .addend = at(op.addend),
                                       .sum = at(op.sum),
                                       .y = at(op.y),
                                       .inverse = at(op.inverse),
                                       .epsilon = op.epsilon},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::NormGradient& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(NormGradientCall{.type = type_of(resolver, op),
                                               .rows = op.rows,
                                               .columns = op.columns,
                                               .dy = at(op.dy),
                                               .s = at(op.s),
                                               .addend = at(op.addend),
                                               .dx = at(op.dx),
                                               .inverse = at(op.inverse)},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::Activation& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(ActivationCall{.kind = op.kind,
                                             .type = type_of(resolver, op),
                                             .rows = op.rows,
                                             .columns = op.columns,
                                             .x = at(op.x),
                                             .up = at(op.up),
                                             .y = at(op.y)},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(ActivationGradientCall{.kind = op.kind,
                                                     .type = type_of(resolver, op),
                                                     .rows = op.rows,
                                                     .columns = op.columns,
                                                     .dy = at(op.dy),
                                                     .x = at(op.x),
                                                     .up = at(op.up),
                                                     .dx = at(op.dx),
                                                     .dup = at(op.dup)},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::Softmax& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(SoftmaxCall{.type = type_of(resolver, op),
                                          .rows = op.rows,
                                          .columns = op.columns,
                                          .batch = op.batch,
                                          .x = at(op.x),
                                          .y = at(op.y)},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op) {
  const OnDevice at{resolver, op};
  return if_there_is_a_kernel(SoftmaxGradientCall{.type = type_of(resolver, op),
                                                  .rows = op.rows,
                                                  .columns = op.columns,
                                                  .batch = op.batch,
                                                  .y = at(op.y),
                                                  .dy = at(op.dy),
                                                  .dx = at(op.dx)},
                              op);
}

Call prepare_op(const Resolver& resolver, const program::Select& op) {
  const program::DType type = list_type(resolver, op);
  require_block(op.block);
  const SelectCall call{.type = type,
                        .count = op.src.count,
                        .block = op.block,
                        .keep = op.keep,
                        .src = on_device(resolver, op.src, "what is selected from"),
                        .values = on_device(resolver, op.values, "the values"),
                        .places = places_at(resolver, op.places)};
  return if_there_is_a_kernel(call, op);
}

Call prepare_op(const Resolver& resolver, const program::Spread& op) {
  const program::DType type = list_type(resolver, op);
  require_block(op.block);
  const SpreadCall call{.type = type,
                        .count = op.dst.count,
                        .block = op.block,
                        .keep = op.keep,
                        .parts = op.parts,
                        .values = on_device(resolver, op.values, "the values"),
                        .places = places_at(resolver, op.places),
                        .dst = on_device(resolver, op.dst, "what lists are spread over")};
  return if_there_is_a_kernel(call, op);
}

Call prepare_op(const Resolver& resolver, const program::Rows& op, const std::uint32_t* from) {
  const program::DType type = list_type(resolver, op);
  require_on_device(resolver, op.dst.slice, "the rows");
  const RowsCall call{.type = type,
                      .rows = op.rows,
                      .columns = op.columns,
                      .each = op.each,
                      .scale = op.scale,
                      .src = on_device(resolver, op.src.slice, "what rows are taken from"),
                      .dst = resolver.address(op.dst, op.rows, op.columns, 1),
                      .src_row = op.src.row_stride,
                      .dst_row = op.dst.row_stride,
                      .from = from};
  return if_there_is_a_kernel(call, op);
}

DeviceMemory upload(const std::vector<std::uint32_t>& words) {
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  DeviceMemory memory = allocate_device(units::Bytes{bytes});
  if (bytes > 0) check(cudaMemcpy(memory.get(), words.data(), bytes, cudaMemcpyDefault));
  return memory;
}

}  // namespace isoscale::executor::cuda
