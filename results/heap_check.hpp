// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

namespace isoscale::results {

/// Whether every global heap collection in the file (HDF5 File Format Specification 2.0, III.E; it
/// holds the texts of attributes) is whole: its objects follow each other to its end. HDF5 1.10
/// gives these no checksum, does not look itself, and crashes where one is damaged. True when the
/// file cannot be looked at: HDF5 then says why.
[[nodiscard]] bool heaps_are_whole(const std::filesystem::path& path);

}  // namespace isoscale::results
