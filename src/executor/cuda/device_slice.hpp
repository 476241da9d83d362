// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "executor/resolve.hpp"

namespace isoscale::executor::cuda {

/// Throws base::Error, naming the operand by its role, unless kernels reach the slice at full
/// speed.
inline void require_on_device(const Resolver& resolver, const program::Slice& slice,
                              std::string_view role) {
  const program::Space space = resolver.space(slice);
  if (space == program::Space::device || space == program::Space::managed ||
      space == program::Space::symmetric) {
    return;
  }
  throw base::Error(fmt::format("{} lies in {} memory; only copies and fills may use that", role,
                                program::name(space)));
}

}  // namespace isoscale::executor::cuda
