// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace isoscale::base {

/// Returns the entries of a folder whose names begin with `prefix`, sorted; empty if the folder
/// cannot be read. Throws std::bad_alloc if memory runs out, where
/// std::filesystem::directory_iterator would end the process (libstdc++ 12).
[[nodiscard]] std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                                            std::string_view prefix = {});

}  // namespace isoscale::base
