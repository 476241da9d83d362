// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/values.hpp"

/// What CLI11 matched of a command line, refused in our words where it is not as it must be.
namespace isoscale::config {

/// Throws base::UsageError: `what`, and how to learn more.
[[noreturn]] void refuse(std::string_view what, const CLI::App& command);

/// The values that were given to an option of `command`.
[[nodiscard]] const std::vector<std::string>& values_of(const CLI::App& command,
                                                        const std::string& option);

/// The value of an option that is given at most once; nullptr when it is not given.
[[nodiscard]] const std::string* value_of(const CLI::App& command, const std::string& option);

/// Calls `parse` and puts the option's name before whatever it complains of.
template <class Parse>
auto with_place(std::string_view option, std::string_view text, Parse parse) {
  try {
    require_sane(text);
    return parse(text);
  } catch (const base::UsageError& error) {
    throw base::UsageError(fmt::format("{}: {}", option, error.what()), error.where());
  } catch (const std::invalid_argument& error) {
    throw base::UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

}  // namespace isoscale::config
