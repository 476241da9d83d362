// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/prepare_list_op.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/device_slice.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/op_requirements.hpp"

namespace isoscale::executor::cuda {
namespace {

std::int32_t* places_at(const Resolver& resolver, const program::Slice& places) {
  return reinterpret_cast<std::int32_t*>(on_device(resolver, places, "the places"));
}

void require_block(std::uint32_t block) {
  if (block <= most_per_list_block) return;
  throw base::Error(
      fmt::format("lists over blocks of {} elements: the CUDA executor has them up to {}", block,
                  most_per_list_block));
}

template <class KernelCall>
void require_type(const KernelCall& call, const char* op) {
  if (has_kernel(call)) return;
  throw base::Error(fmt::format("the CUDA executor has no {} of {}", op, program::name(call.type)));
}

}  // namespace

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
  require_type(call, "select");
  return call;
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
  require_type(call, "spread");
  return call;
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
  require_type(call, "rows");
  return call;
}

DeviceMemory upload(const std::vector<std::uint32_t>& words) {
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  DeviceMemory memory = allocate_device(units::Bytes{bytes});
  if (bytes > 0) check(cudaMemcpy(memory.get(), words.data(), bytes, cudaMemcpyDefault));
  return memory;
}

}  // namespace isoscale::executor::cuda
