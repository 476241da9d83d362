// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

namespace isoscale::analysis::page {

/// Returns the page without data, as it was built from its sources in analysis/page/web; absent in
/// a build without npm.
[[nodiscard]] std::optional<std::string_view> page_asset();

}  // namespace isoscale::analysis::page
