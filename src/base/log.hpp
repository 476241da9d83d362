// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace isoscale::base {

/// One whole line on standard error, written by a single call so that ranks do not interleave.
/// Library code speaks through this and never on standard output.
void warn(std::string_view line);

}  // namespace isoscale::base
