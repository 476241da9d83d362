// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string_view>

namespace isoscale::base {

/// One whole line on standard error, written by a single call so that ranks do not interleave.
/// Library code speaks through this and never on standard output.
void warn(std::string_view line);

/// The same from a thread that may not wait for whoever reads standard error: of a pipe or terminal
/// that takes no more for `limit`, the rest of the line is dropped.
void warn_within(std::string_view line,
                 std::chrono::milliseconds limit = std::chrono::milliseconds{500});

}  // namespace isoscale::base
