// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "executor/resolver.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

/// The demands of both executors on ops, and errors that name the op.
namespace isoscale::executor {

/// Returns for example "op 17, gemm (forward, layer 3, microbatch 1)".
[[nodiscard]] std::string describe(const program::Op& op, std::uint32_t index);

/// Returns the result of `work`. If it throws base::Error, the error is thrown again with the op's
/// name in front of its message.
template <class Work>
auto naming(const program::Op& op, std::uint32_t index, const Work& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("{}: {}", describe(op, index), error.what()), error.where());
  }
}

/// Throws base::Error if a fill reaches beyond its slice, or has values that the slice's type does
/// not have.
void require_fill(const Resolver& resolver, const program::Fill& op);

/// Throws base::Error if the operands of an add differ in type, or if their type cannot represent
/// its scale.
void require_add(const Resolver& resolver, const program::Add& op);

[[nodiscard]] bool is_integer(program::DType type);

[[nodiscard]] inline program::FillGrid grid_of(const program::Fill& op) {
  return {.origin = program::fill_origin(op.key), .range = op.range, .one_in = op.one_in};
}

/// Throws base::Error unless a checksum has two i64 elements to write to, and two for its `flip` if
/// it has one.
inline void require_sum(const Resolver& resolver, const program::Checksum& op) {
  const auto is_pair = [&](const program::Slice& slice) {
    return slice.count == 2 && resolver.dtype(slice) == program::DType::i64;
  };
  if (!is_pair(op.sum)) throw base::Error("a checksum goes to two i64 elements");
  if (op.flip.buffer == program::no_buffer || is_pair(op.flip)) return;
  throw base::Error("what a checksum flips stands in two i64 elements");
}

/// These return the common floating type of all operands of a norm, activation or softmax. All
/// throw base::Error if operands differ in type, if their type cannot be computed with, or if the
/// inverses of a norm are not one per row, in f64 for rows of f64 and in f32 for others.
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver,
                                     const program::ActivationGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::SoftmaxGradient& op);

/// These return the common floating type of the elements that an op selects, spreads or copies by
/// rows. All throw base::Error if extents or row numbers do not fit, if operands differ in type, if
/// their type cannot be computed with, if the places of Select or Spread are not i32, or if source
/// and destination overlap.
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Select& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Rows& op);

}  // namespace isoscale::executor
