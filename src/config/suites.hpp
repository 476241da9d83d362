// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "config/layer.hpp"

namespace isoscale::config {

/// Names of the built-in suites.
[[nodiscard]] std::vector<std::string_view> suite_names();
/// Throws base::UsageError with the nearest name.
[[nodiscard]] Layer load_suite(std::string_view name);

}  // namespace isoscale::config
