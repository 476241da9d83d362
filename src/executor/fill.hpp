// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/resolve.hpp"
#include "program/fill.hpp"
#include "program/op.hpp"

namespace isoscale::executor {

/// Throws base::Error when a fill reaches beyond its slice, or asks for values that the slice's
/// type does not have.
void require_fill(const Resolver& resolver, const program::Fill& op);

[[nodiscard]] inline program::FillGrid grid_of(const program::Fill& op) {
  return {.origin = program::fill_origin(op.key), .range = op.range, .one_in = op.one_in};
}

}  // namespace isoscale::executor
