// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/folder_entries.hpp"

#include <dirent.h>

#include <algorithm>

#include "base/handle.hpp"

namespace isoscale::base {

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder,
                                              std::string_view prefix) {
  std::vector<std::filesystem::path> entries;
  const Handle<GivenBackBy<DIR*, closedir>> open{opendir(folder.c_str())};
  while (const dirent* const entry = open ? readdir(open.get()) : nullptr) {
    const std::string_view name{entry->d_name};
    if (name != "." && name != ".." && name.starts_with(prefix)) entries.push_back(folder / name);
  }
  std::ranges::sort(entries);
  return entries;
}

}  // namespace isoscale::base
