// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/resolve.hpp"
#include "program/op.hpp"

/// What both executors ask of ops that pick elements or rows.
namespace isoscale::executor {

/// The floating type that elements have. All throw base::Error when extents or indices do not fit,
/// when operands differ in type, when it is none to compute with, when places are not i32, or when
/// what is read and what is written overlap.
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Select& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] program::DType list_type(const Resolver& resolver, const program::Rows& op);

}  // namespace isoscale::executor
