// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

namespace isoscale::analysis::page {

std::optional<std::string_view> page_asset() { return std::nullopt; }

}  // namespace isoscale::analysis::page
