// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/report.hpp"

namespace isoscale {

/// What each file says on a line of an index, or why it says nothing; in the order given. Runs are
/// read, looked at and let go one by one; of many files by several processes (at most 8, and no
/// more than there are cores), since HDF5 lets one thread in at a time. A file that ends the
/// process which reads it is one that cannot be read.
[[nodiscard]] std::vector<analysis::IndexAnswer> index_files(
    const std::vector<std::filesystem::path>& files, const analysis::ReportOptions& options);

}  // namespace isoscale
