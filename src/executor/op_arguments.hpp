// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "executor/operand_addresses.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"
#include "program/operands.hpp"

/// Checks what the host and the CUDA executor both require of ops, puts the op's name into error
/// messages, and looks up operands.
namespace isoscale::executor {

/// Calls `work` and returns its result. If `work` throws base::Error, throws the error again with
/// the op's name in front of its message: "op 17, gemm (forward, layer 3, microbatch 1): ...".
template <class Work>
auto naming(const program::Op& op, std::uint32_t index, const Work& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    throw base::Error(
        fmt::format("op {}, {}: {}", index,
                    program::describe(program::kind_of(op.payload), op.place), error.what()),
        error.where());
  }
}

[[nodiscard]] bool is_integer(program::DType type);

[[nodiscard]] inline program::FillGrid grid_of(const program::Fill& op) {
  return {.origin = program::fill_origin(op.key), .range = op.range, .one_in = op.one_in};
}

/// An operand's name, the element types that the op allows for it, and the type that it has.
struct TypedOperand {
  const char* name = "";
  program::Elements elements = program::Elements::any;
  program::DType type = program::DType::f32;
};
/// Returns the type of those operands of an op that must all have one type (Elements::common); f32
/// if the op has no such operands. Throws base::Error if their types differ, or if another operand
/// has a type that the op does not allow.
[[nodiscard]] program::DType common_type(program::OpKind kind,
                                         const std::vector<TypedOperand>& operands);

/// Returns an op with the addresses of its operands on this rank. For a Fill, `shard.base` is set
/// to the position that the first element of this rank's shard (part) has in the whole tensor.
/// `accept(operand, slice)` is called for each operand, and throws base::Error if the device cannot
/// use the operand. Also throws base::Error if the op itself is malformed.
template <class Op, class Accept>
[[nodiscard]] Arguments<Op> arguments_of(const Resolver& resolver, const Op& op,
                                         const Accept& accept) {
  if (const auto mistake = program::mistake(op)) throw base::Error(*mistake);
  Arguments<Op> call;
  call.op = op;
  std::vector<TypedOperand> typed;
  program::for_each_operand(op, [&](const auto& operand, std::size_t number) {
    const program::Slice slice = operand.slice(op);
    typed.push_back({operand.name, operand.elements, resolver.dtype(slice)});
    accept(typed.back(), slice);
    call.operands[number] = {resolver.address(slice), typed.back().type};
  });
  call.type = common_type(program::kind_of(op), typed);
  if constexpr (std::is_same_v<Op, program::Fill>) {
    call.op.shard.base = op.shard.first(resolver.coordinates());
    call.op.shard.steps = {};
  }
  return call;
}

/// Returns the addresses and strides of the copy that a Copy op makes. Throws the same errors as
/// arguments_of().
[[nodiscard]] StridedCopy strided_copy(const Resolver& resolver, const program::Copy& op);

}  // namespace isoscale::executor
