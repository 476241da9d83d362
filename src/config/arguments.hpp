// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/command_line.hpp"
#include "workloads/workload.hpp"

namespace isoscale::config {

/// parse_command_line() of command_line.hpp, with a table of workloads of the caller's. The first
/// argument is the program.
[[nodiscard]] Command parse_arguments(std::span<const std::string> arguments,
                                      std::span<const workloads::Workload> known);

/// The arguments as one would type them into a shell, in ASCII where they are not plain text.
[[nodiscard]] std::string shell_quoted(std::span<const std::string> arguments);
/// The arguments that shell_quoted() wrote, but for those that it wrote as $'...'.
[[nodiscard]] std::vector<std::string> shell_words(std::string_view line);

}  // namespace isoscale::config
