// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string_view>

namespace isoscale::base {

/// Writes a line to standard error, by a single write() if that takes the whole line, so that the
/// lines of ranks do not interleave. Control characters except line breaks are escaped. Library
/// code prints its messages by this function and never writes to standard output.
void warn(std::string_view line);

/// Writes a line like warn(), for a thread that must not wait long for the reader of standard
/// error. The part that a pipe or terminal has not taken within `limit` is dropped.
void warn_within(std::string_view line,
                 std::chrono::milliseconds limit = std::chrono::milliseconds{500});

}  // namespace isoscale::base
