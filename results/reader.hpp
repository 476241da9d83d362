// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "results/run_data.hpp"

namespace isoscale::results {

/// The whole run of a run file and of its part files. Attributes, groups and datasets that this
/// version does not know are passed over. Throws base::UsageError, which names the file, when it is
/// missing, no HDF5 file, truncated, no run file, of a newer or older major schema version,
/// damaged, or contradicts itself.
[[nodiscard]] RunData read_run(const std::filesystem::path& path);

/// Whether a file is there that may be a run file or a part of one, and is not to be overwritten
/// with anything else.
[[nodiscard]] bool may_be_run_file(const std::filesystem::path& path);

}  // namespace isoscale::results
