// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/matrices.hpp"
#include "program/op.hpp"

namespace isoscale::program {

/// Elements that an op writes, and no others between them.
struct Output {
  Matrix matrix{};
  Extents extents{};
};

/// What an op writes; a Fill with gaps between its elements counts as none.
[[nodiscard]] std::vector<Output> outputs_of(const Payload& payload);

}  // namespace isoscale::program
