// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "program/op.hpp"

namespace isoscale::program {

/// What is wrong with an op by itself: a matrix that reaches beyond its slice, operands that do not
/// go together. Nothing when it is well formed.
[[nodiscard]] std::optional<std::string> shape_mistake(const Payload& payload);

}  // namespace isoscale::program
