// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/op_arguments.hpp"

#include <cmath>
#include <string_view>

namespace isoscale::executor {

namespace {

using program::DType;

bool is_whole(double value) {
  constexpr double most = 4611686018427387904.0;  // 2^62, so that the value fits in an i64
  return std::trunc(value) == value && std::abs(value) <= most;
}

void require_inside(const program::Fill& op) {
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < op.shard.extents.size(); ++d) {
    if (op.shard.extents[d] == 0) return;  // the shard is empty
    last += (op.shard.extents[d] - 1) * op.shard.local[d];
  }
  if (last < op.dst.count) return;
  throw base::Error(
      fmt::format("a fill reaches local element {} of a slice of {} elements", last, op.dst.count));
}

void require_exponent(const program::Fill& op, DType type) {
  constexpr std::int32_t least_normal = -1022, greatest = 1016;  // 127 * 2^1016 is a finite f64
  constexpr std::int32_t greatest_of_integers = 56;              // 127 * 2^56 < 2^63
  const bool whole = is_integer(type);
  const std::int32_t least = whole ? 0 : least_normal;
  const std::int32_t most = whole ? greatest_of_integers : greatest;
  if (op.exponent >= least && op.exponent <= most) return;
  throw base::Error(fmt::format("a fill of {} with exponent {} is not representable: {} to {} are",
                                program::name(type), op.exponent, least, most));
}

/// Throws base::Error if an operand that the op writes overlaps another operand of the op.
template <class Op>
void require_apart(const Arguments<Op>& call) {
  program::for_each_operand(call.op, [&](const auto& a, std::size_t number_a) {
    program::for_each_operand(call.op, [&](const auto& b, std::size_t number_b) {
      const OperandAt &at_a = call.operands[number_a], &at_b = call.operands[number_b];
      const bool is_same = std::string_view{a.name} == b.name;
      if (is_same || a.mode == program::Mode::read || at_a.data == nullptr) return;
      const std::size_t bytes_a = a.slice(call.op).count * program::element_size(at_a.type);
      const std::size_t bytes_b = b.slice(call.op).count * program::element_size(at_b.type);
      if (at_a.data + bytes_a <= at_b.data || at_b.data + bytes_b <= at_a.data) return;
      throw base::Error("what elements are picked from and where they go overlap");
    });
  });
}

/// Throws base::Error if the slice is used (it has a buffer) and does not have `count` elements.
void require_count(const program::Slice& slice, std::uint64_t count, const char* name) {
  if (slice.buffer == program::no_buffer || slice.count == count) return;
  throw base::Error(fmt::format("{} has {} elements; it should have {}", name, slice.count, count));
}

}  // namespace

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

void require_possible(const Arguments<program::Add>& call) {
  if (is_integer(call.type) && !is_whole(call.op.scale)) {
    throw base::Error(fmt::format("an add of {} with scale {}: no whole number",
                                  program::name(call.type), call.op.scale));
  }
}

void require_possible(const Arguments<program::Fill>& call) {
  const program::Fill& op = call.op;
  const DType type = call.type;
  require_inside(op);
  if (op.source == program::FillSource::constant) {
    if (is_integer(type) && !is_whole(op.value)) {
      throw base::Error(
          fmt::format("a fill of {} with {}: no whole number", program::name(type), op.value));
    }
    return;
  }
  require_exponent(op, type);
  if (op.source == program::FillSource::normal) {
    if (!is_integer(type)) return;
    throw base::Error(fmt::format("a fill of {} with numbers of a normal", program::name(type)));
  }
  constexpr std::int32_t greatest_range = 127;
  if (op.range < 1 || op.range > greatest_range) {
    throw base::Error(fmt::format("a fill with integers up to {}: 1 to {} are possible", op.range,
                                  greatest_range));
  }
  if (op.one_in < 1) throw base::Error("a fill that draws one of 0 elements");
}

void require_possible(const Arguments<program::Update>& call) {
  using program::Update;
  const Update& op = call.op;
  require_count(op.gradient, op.weight.count, "the gradient");
  require_count(op.master, op.weight.count, "the master weight");
  if (op.optimizer != program::Optimizer::adam) return;
  require_count(op.moment1, op.weight.count, "moment 1");
  require_count(op.moment2, op.weight.count, "moment 2");
  require_count(op.powers, 2, "the powers of an Adam update");
  const bool has_master = call[&Update::master].data != nullptr;
  const DType state = call[has_master ? &Update::master : &Update::weight].type;
  for (const auto moment : {&Update::moment1, &Update::moment2}) {
    if (call[moment].data == nullptr) throw base::Error("an Adam update has two moments");
    if (call[moment].type == state) continue;
    throw base::Error(fmt::format("moments and weight differ in type: {} and {}",
                                  program::name(call[moment].type), program::name(state)));
  }
  if (call[&Update::powers].data == nullptr) throw base::Error("an Adam update has powers");
}

void require_possible(const Arguments<program::Checksum>& call) {
  require_count(call.op.sum, 2, "a checksum");
  require_count(call.op.flip, 2, "what a checksum flips");
}

void require_possible(const Arguments<program::Select>& call) { require_apart(call); }
void require_possible(const Arguments<program::Spread>& call) { require_apart(call); }
void require_possible(const Arguments<program::Rows>& call) { require_apart(call); }

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
