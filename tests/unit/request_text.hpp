// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "mesh/mesh_request.hpp"
#include "tests/support/options.hpp"
#include "workloads/api/workload.hpp"

/// Options and meshes as users write them.
namespace isoscale::workloads {

/// Reads "schedule=interleaved v=2".
inline Options operator""_options(const char* text, std::size_t size) {
  return options_of({text, size});
}

/// "tp=2,pp=4"; "" is the mesh of one rank.
inline mesh::Shape operator""_mesh(const char* text, std::size_t size) {
  mesh::Shape shape;
  if (size == 0) return shape;
  for (const auto& [axis, extent] : mesh::parse_request({text, size})) shape[axis] = extent;
  return shape;
}

/// Every combination of a value of each option.
inline std::vector<Options> combinations(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& choices) {
  std::vector<Options> all{{}};
  for (const auto& [key, values] : choices) {
    std::vector<Options> longer;
    for (const Options& begun : all) {
      for (const std::string& value : values) {
        longer.push_back(begun);
        longer.back()[key] = value;
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace isoscale::workloads
