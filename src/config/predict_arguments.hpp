// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/App.hpp>
#include <span>

#include "config/command_line.hpp"

namespace isoscale::config {

/// What was asked of `predict`. Throws base::UsageError. Keys of --set are checked where it is
/// known which workload and machine they are about.
[[nodiscard]] PredictCommand interpret_predict(const CLI::App& command,
                                               std::span<const workloads::Workload> known);

}  // namespace isoscale::config
