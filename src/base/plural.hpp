// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace isoscale::base {

/// The noun as it follows `count`: "rank" after 1, "ranks" after others; "switch", "switches".
[[nodiscard]] inline std::string plural(std::integral auto count, std::string_view noun) {
  if (count == 1) return std::string{noun};
  if (noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with('s') || noun.ends_with('x')) {
    return fmt::format("{}es", noun);
  }
  return fmt::format("{}s", noun);
}

/// "1 rank", "4 ranks".
[[nodiscard]] inline std::string counted(std::integral auto count, std::string_view noun) {
  return fmt::format("{} {}", count, plural(count, noun));
}

}  // namespace isoscale::base
