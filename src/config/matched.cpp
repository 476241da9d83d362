// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/matched.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace isoscale::config {
namespace {

std::string help_of(const CLI::App& command) {
  const bool top = command.get_parent() == nullptr;
  return fmt::format("see: isoscale {}--help", top ? "" : command.get_name() + " ");
}

}  // namespace

void refuse(std::string_view what, const CLI::App& command) {
  throw base::UsageError(fmt::format("{}; {}", what, help_of(command)));
}

const std::vector<std::string>& values_of(const CLI::App& command, const std::string& option) {
  const auto& values = command.get_option(option)->results();
  for (const std::string& value : values) {
    if (!value.starts_with("--")) continue;
    refuse(fmt::format("{} needs a value, but {} follows", option, base::quoted(value)), command);
  }
  return values;
}

const std::string* value_of(const CLI::App& command, const std::string& option) {
  const auto& values = values_of(command, option);
  if (values.size() > 1) {
    refuse(fmt::format("{} is given twice, as {} and as {}; give it once", option,
                       base::quoted(values[0]), base::quoted(values[1])),
           command);
  }
  return values.empty() ? nullptr : &values.front();
}

}  // namespace isoscale::config
