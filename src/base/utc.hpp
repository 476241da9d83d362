// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace isoscale::base {

/// Now, in UTC, ISO 8601: "2026-01-31T12:34:56Z".
[[nodiscard]] std::string utc_now();

}  // namespace isoscale::base
