// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/op_arguments.hpp"

#include <optional>

namespace isoscale::executor {

using program::DType;

bool is_integer(DType type) {
  return type == DType::i64 || type == DType::i32 || type == DType::i8 || type == DType::u8;
}

DType common_type(program::OpKind kind, const std::vector<TypedOperand>& operands) {
  using program::Elements;
  std::optional<DType> common;
  for (const TypedOperand& operand : operands) {
    if (operand.elements != Elements::common) continue;
    if (common && *common != operand.type) {
      throw base::Error(fmt::format("{} op: operands differ in type: {} and {}",
                                    program::name(kind), program::name(*common),
                                    program::name(operand.type)));
    }
    common = operand.type;
  }
  for (const TypedOperand& operand : operands) {
    DType expected = operand.type;
    if (operand.elements == Elements::wide) {
      expected = common == DType::f64 ? DType::f64 : DType::f32;
    } else if (operand.elements == Elements::f32) {
      expected = DType::f32;
    } else if (operand.elements == Elements::i32) {
      expected = DType::i32;
    } else if (operand.elements == Elements::i64) {
      expected = DType::i64;
    }
    if (operand.type == expected) continue;
    throw base::Error(fmt::format("{} op: {} is {}; it should be {}", program::name(kind),
                                  operand.name, program::name(operand.type),
                                  program::name(expected)));
  }
  return common.value_or(DType::f32);
}

StridedCopy strided_copy(const Resolver& resolver, const program::Copy& op) {
  const auto call = arguments_of(resolver, op, [](const TypedOperand&, const program::Slice&) {});
  const MatrixAt src = call[&program::Copy::src], dst = call[&program::Copy::dst];
  const std::size_t size = program::element_size(call.type);
  return merged({.src = src.data,
                 .dst = dst.data,
                 .row_bytes = op.columns * size,
                 .rows = op.rows,
                 .batch = op.batch,
                 .src_row = src.row_stride * size,
                 .src_batch = src.batch_stride * size,
                 .dst_row = dst.row_stride * size,
                 .dst_batch = dst.batch_stride * size});
}

}  // namespace isoscale::executor
