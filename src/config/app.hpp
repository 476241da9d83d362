// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <array>
#include <memory>
#include <string_view>

namespace isoscale::config {

/// Names of positional arguments, as --help prints them.
inline constexpr const char* experiment_argument = "EXPERIMENT.toml";
inline constexpr const char* files_argument = "RUN.h5";
inline constexpr const char* sides_argument = "A.h5";
inline constexpr const char* source_argument = "RUN.h5|SYSTEM.toml";
inline constexpr const char* what_argument = "WHAT";
inline constexpr const char* workload_argument = "WORKLOAD";
inline constexpr const char* shell_argument = "SHELL";

/// Those options of run that check has too.
inline constexpr std::array<std::string_view, 5> check_options{"device", "blas-threads", "gpu-bind",
                                                               "share-gpu", "allow"};

/// The commands and their options for CLI11 to match and to describe; what it finds stays with the
/// options as text. Unknown arguments are left in remaining().
[[nodiscard]] std::unique_ptr<CLI::App> make_app();

}  // namespace isoscale::config
