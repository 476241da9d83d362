// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/host/calls.hpp"
#include "executor/host/resolve.hpp"
#include "program/op.hpp"

/// Ops that pick elements or rows; all throw base::Error when the host cannot play them.
namespace isoscale::executor::host {

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Rows& op);

/// In any floating type.
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Spread& op);
[[nodiscard]] Call prepare_emulated(const Resolver& resolver, const program::Rows& op);

}  // namespace isoscale::executor::host
