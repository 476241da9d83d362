// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <vector>

#include "config/run_config.hpp"

namespace isoscale::results {

/// Finds out before anything runs whether a run file can be written at `path`: the directory exists
/// and takes files (one is created and removed), and nothing is there that may not be replaced.
/// Removes temporary files that killed runs of this machine left there. Throws base::UsageError.
void check_output(const std::filesystem::path& path, config::IfExists if_exists);

/// Where the part file of a point lies: beside the run file, "run.part0003.h5" for "run.h5",
/// unless something else has that name (new_part_path).
[[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& run_file, int index);
/// The files that have the name of a part of the run file, whoever wrote them; ascending.
[[nodiscard]] std::vector<std::filesystem::path> existing_parts(
    const std::filesystem::path& run_file);
/// Where a run file really goes: absolute, and through a link to what the link points to.
[[nodiscard]] std::filesystem::path resolved_output(const std::filesystem::path& path);

}  // namespace isoscale::results
