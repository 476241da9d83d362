// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "program/op.hpp"

namespace isoscale::executor {

/// "op 17, gemm (forward, layer 3, microbatch 1)".
[[nodiscard]] std::string describe(const program::Op& op, std::uint32_t index);

/// What `work` returns; an error of ours is thrown again with the op's name before it.
template <class Work>
auto naming(const program::Op& op, std::uint32_t index, const Work& work) {
  try {
    return work();
  } catch (const base::Error& error) {
    throw base::Error(fmt::format("{}: {}", describe(op, index), error.what()), error.where());
  }
}

}  // namespace isoscale::executor
