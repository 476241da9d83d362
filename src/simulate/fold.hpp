// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/outline.hpp"

namespace isoscale::simulate {

/// The same programs with every op on stream 0, in program order, as an executor plays them that
/// has one thread for all streams: nothing runs beside anything, and there is nothing to wait for
/// but the op before. Numbers of ops stay.
[[nodiscard]] program::OutlineSet folded(program::OutlineSet set);

}  // namespace isoscale::simulate
