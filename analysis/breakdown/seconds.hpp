// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "units/quantity.hpp"

namespace isoscale::analysis {

/// A time of a trace, as breakdowns have it.
inline double seconds(units::Nanoseconds time) { return units::to_seconds(time).value(); }

}  // namespace isoscale::analysis
