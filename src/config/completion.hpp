// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "workloads/api/workload.hpp"

namespace isoscale::config {

enum class Shell : std::uint8_t { bash, zsh };
[[nodiscard]] std::string_view name(Shell shell);

/// Returns a script that teaches `shell` to complete the commands and options of `app`. Scripts of
/// both shells hold the same table of what CLI11 knows, with rows of COMMAND|WORD|VALUES|HELP.
/// COMMAND is empty for the program itself; WORD is an option, a command, or an argument's place
/// from 1. VALUES has words and patterns of file names, "tiny *.toml": with a comma in front if
/// several may be given, "-" if there is no value, and empty if only the user can know it.
[[nodiscard]] std::string completion_script(Shell shell, const CLI::App& app,
                                            std::span<const workloads::Workload> known);

}  // namespace isoscale::config
