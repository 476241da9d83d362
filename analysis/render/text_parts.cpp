// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/text_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "analysis/render/text_escape.hpp"

namespace isoscale::analysis {

std::string lines(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text += fmt::format("  {}{:{}} {}\n", key, "", 8 - std::min<std::size_t>(8, display_width(key)),
                        value);
  }
  return text;
}

std::string titled(const TitledTable& part) {
  return "  " + part.title + "\n" + table(part.columns, part.rows);
}

}  // namespace isoscale::analysis
