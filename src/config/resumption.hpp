// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "config/layer.hpp"
#include "config/run_config.hpp"

/// What --resume makes of a command line, and of the settings that the run file keeps.
namespace isoscale::config {

/// The configuration of a command line with --resume: the file, --budget, --allow and --quiet.
/// Throws base::UsageError for every other option, and for an experiment file that says anything:
/// the run file says what is measured.
[[nodiscard]] RunConfig resumption(const Layer& file, const Layer& command_line);

/// The settings of the run that is gone on with: what it was measured with, from its echo `toml`,
/// and of `asked` the file, the budget, the checks that are passed over and what is printed: these
/// are of one launch. Throws base::UsageError when `toml` cannot be read.
[[nodiscard]] RunConfig resumed(const RunConfig& asked, std::string_view toml);

}  // namespace isoscale::config
