// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/fault/open_handles.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace isoscale::fault {

std::string open_handles() {
  std::string text;
  for (const auto& [kind, name] : std::initializer_list<std::pair<H5I_type_t, const char*>>{
           {H5I_FILE, "files"},
           {H5I_GROUP, "groups"},
           {H5I_DATATYPE, "types"},
           {H5I_DATASPACE, "spaces"},
           {H5I_DATASET, "datasets"},
           {H5I_ATTR, "attributes"},
           {H5I_GENPROP_LST, "property lists"}}) {
    hsize_t count = 0;
    H5Inmembers(kind, &count);
    text += fmt::format("{} {}, ", count, name);
  }
  const std::filesystem::directory_iterator descriptors{"/proc/self/fd"};
  return text + fmt::format("{} descriptors", std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace isoscale::fault
