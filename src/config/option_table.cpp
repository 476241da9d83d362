// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/option_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "config/option_rows.hpp"

namespace isoscale::config {

std::string_view name(Group group) {
  constexpr std::array<std::string_view, 6> names{"Basic",    "What",    "Where",
                                                  "How long", "Looking", "File"};
  return names[static_cast<std::size_t>(group)];
}

std::span<const RunOption> run_options() {
  static const std::vector<RunOption> options = [] {
    std::vector<RunOption> all;
    for (const auto rows :
         {what_options(), where_options(), how_long_options(), looking_options(), file_options()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return options;
}

std::string key_of(const RunOption& option) {
  std::string key{option.name};
  std::ranges::replace(key, '-', '_');
  return key;
}

const RunOption* find_option(std::string_view long_name) {
  const auto options = run_options();
  const auto found = std::ranges::find(options, long_name, &RunOption::name);
  return found == options.end() ? nullptr : &*found;
}

}  // namespace isoscale::config
