// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/outline.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::simulate {

/// The axes along which ranks wait for each other all through a step, not just at its end: where
/// the longest stretch of computation between two meetings along the axis, or waits for one on
/// another stream, is at most half of the step's. Every program must do so.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh,
                                       const std::vector<program::Outline>& outlines,
                                       const std::vector<std::vector<units::Nanoseconds>>& tables,
                                       const std::vector<std::uint32_t>& outline_of_class,
                                       const std::vector<std::uint32_t>& table_of_class);

}  // namespace isoscale::simulate
