// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "program/op.hpp"

namespace isoscale::program {

/// "gemm layer 3 mb 0": what an op is called where timelines are looked at.
[[nodiscard]] std::string label(OpKind kind, const Place& place);

}  // namespace isoscale::program
