// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>

namespace isoscale::comm {

/// Says on standard error what check() would throw: where something ends, and nobody is left to
/// catch it.
void warn_unless_ok(int code,
                    std::source_location where = std::source_location::current()) noexcept;

}  // namespace isoscale::comm
