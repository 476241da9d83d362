// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

namespace isoscale::analysis {

/// The page as its sources in analysis/page/web build it, without data; absent in a build without
/// npm.
[[nodiscard]] std::optional<std::string_view> page_asset();

}  // namespace isoscale::analysis
