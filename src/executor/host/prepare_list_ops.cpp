// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare_list_ops.hpp"

#include "executor/op_requirements.hpp"

namespace isoscale::executor::host {
namespace {

std::int32_t* places_at(const Resolver& resolver, const program::Slice& places) {
  return reinterpret_cast<std::int32_t*>(resolver.address(places));
}

}  // namespace

Call prepare_emulated(const Resolver& resolver, const program::Select& op) {
  const program::DType type = list_type(resolver, op);
  return SelectCall{.type = type,
                    .count = op.src.count,
                    .block = op.block,
                    .keep = op.keep,
                    .src = resolver.address(op.src),
                    .values = resolver.address(op.values),
                    .places = places_at(resolver, op.places)};
}

Call prepare_emulated(const Resolver& resolver, const program::Spread& op) {
  const program::DType type = list_type(resolver, op);
  return SpreadCall{.type = type,
                    .count = op.dst.count,
                    .block = op.block,
                    .keep = op.keep,
                    .parts = op.parts,
                    .values = resolver.address(op.values),
                    .places = places_at(resolver, op.places),
                    .dst = resolver.address(op.dst)};
}

Call prepare_emulated(const Resolver& resolver, const program::Rows& op) {
  const program::DType type = list_type(resolver, op);
  return RowsCall{.type = type,
                  .columns = op.columns,
                  .each = op.each,
                  .scale = op.scale,
                  .src = resolver.address(op.src.slice),
                  .dst = resolver.address(op.dst, op.rows, op.columns, 1),
                  .src_row = op.src.row_stride,
                  .dst_row = op.dst.row_stride,
                  .from = op.from};
}

Call prepare_op(const Resolver& resolver, const program::Select& op) {
  static_cast<void>(resolver.element(op.src, "what is selected from"));
  return prepare_emulated(resolver, op);
}

Call prepare_op(const Resolver& resolver, const program::Spread& op) {
  static_cast<void>(resolver.element(op.dst, "what lists are spread over"));
  return prepare_emulated(resolver, op);
}

Call prepare_op(const Resolver& resolver, const program::Rows& op) {
  static_cast<void>(resolver.element(op.dst.slice, "the rows"));
  return prepare_emulated(resolver, op);
}

}  // namespace isoscale::executor::host
