// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/resolve.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

/// What both executors ask of ops that go through memory element by element.
namespace isoscale::executor {

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

}  // namespace isoscale::executor
