// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/records/run_data.hpp"

namespace isoscale::results {

/// Reads the whole run from a run file and its part files. Attributes, groups and datasets that
/// this version does not know are ignored. Throws base::UsageError, which names the file, when it
/// is missing, unreadable, not an HDF5 file, truncated, not a run file, of a newer or older major
/// schema version, damaged, inconsistent, or too large for memory. It refuses a file whose digest
/// is wrong, and reads one that has no digest.
[[nodiscard]] RunData read_run(const std::filesystem::path& path);

/// Reads those points of the run `id` that can be read, so that they can be written to another
/// file. Part files are in `parts_in`, even if `path` is elsewhere.
[[nodiscard]] std::vector<PointData> readable_points(const std::filesystem::path& path,
                                                     const std::string& id,
                                                     const std::filesystem::path& parts_in);

/// True if `path` is a regular file that begins like an HDF5 file or like a run file. It may then
/// be a run file or a part of one, so it must not be overwritten with other content.
[[nodiscard]] bool may_be_run_file(const std::filesystem::path& path);

/// Returns the id of the run that a file of this format (such as format_name) belongs to; none when
/// the file has another format or a wrong digest, cannot be read, is missing, a link or not
/// regular. Throws no HDF5 errors.
[[nodiscard]] std::optional<std::string> run_id_of(const std::filesystem::path& path,
                                                   std::string_view format);

}  // namespace isoscale::results
