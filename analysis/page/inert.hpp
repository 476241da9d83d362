// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace isoscale::analysis {

/// JSON in ASCII that begins and ends no element of HTML, whatever text is in it; bytes that are no
/// UTF-8 become U+FFFD.
[[nodiscard]] std::string inert(const nlohmann::ordered_json& data);

}  // namespace isoscale::analysis
