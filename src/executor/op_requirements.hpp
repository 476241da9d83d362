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

/// The demands that both executors make on ops, and errors that name the op.
namespace isoscale::executor {

/// "op 17, gemm (forward, layer 3, microbatch 1)".
[[nodiscard]] std::string describe(const program::Op& op, std::uint32_t index);

/// Returns what `work` does; an error of ours is thrown again with the op's name before it.
template <class Work>
auto naming(const program::Op& op, std::uint32_t index, const Work& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("{}: {}", describe(op, index), error.what()), error.where());
  }
}

/// Throws base::Error when a fill reaches beyond its slice, or asks for values that the slice's
/// type does not have.
void require_fill(const Resolver& resolver, const program::Fill& op);

/// Throws base::Error when the operands of an add differ in type, or its scale is not one of
/// theirs.
void require_add(const Resolver& resolver, const program::Add& op);

[[nodiscard]] bool is_integer(program::DType type);

[[nodiscard]] inline program::FillGrid grid_of(const program::Fill& op) {
  return {.origin = program::fill_origin(op.key), .range = op.range, .one_in = op.one_in};
}

/// Throws base::Error unless a checksum goes to two i64 elements, and what is to be flipped stands
/// in two.
inline void require_sum(const Resolver& resolver, const program::Checksum& op) {
  const auto is_pair = [&](const program::Slice& slice) {
    return slice.count == 2 && resolver.dtype(slice) == program::DType::i64;
  };
  if (!is_pair(op.sum)) throw base::Error("a checksum goes to two i64 elements");
  if (op.flip.buffer == program::no_buffer || is_pair(op.flip)) return;
  throw base::Error("what a checksum flips stands in two i64 elements");
}

/// The floating type of all operands of a norm, activation or softmax. All throw base::Error when
/// operands differ in type, when the type is none to compute with, or when the inverses of a norm
/// are not one per row, in f32 or, of f64 rows, in f64.
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Norm& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::NormGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Activation& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver,
                                     const program::ActivationGradient& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::Softmax& op);
[[nodiscard]] program::DType type_of(const Resolver& resolver, const program::SoftmaxGradient& op);

/// The floating type of elements that are picked, alone or as rows. All throw base::Error when
/// extents or indices do not fit, when operands differ in type, when it is none to compute with,
/// when places are not i32, or when what is read and what is written overlap.
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Select& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Rows& op);

}  // namespace isoscale::executor
