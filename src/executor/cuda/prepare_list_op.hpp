// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda/call.hpp"
#include "executor/cuda/handles.hpp"
#include "executor/resolver.hpp"

/// Ops that pick elements or rows; all throw base::Error when the device cannot play them.
namespace isoscale::executor::cuda {

[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Select& op);
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Spread& op);
/// `from` is the op's table in device memory.
[[nodiscard]] Call prepare_op(const Resolver& resolver, const program::Rows& op,
                              const std::uint32_t* from);

/// A copy in device memory.
[[nodiscard]] DeviceMemory upload(const std::vector<std::uint32_t>& words);

}  // namespace isoscale::executor::cuda
