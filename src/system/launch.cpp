// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <array>

#include "system/facts.hpp"

namespace isoscale::system {

bool speaks_for_launch(const Lookup& environment) {
  constexpr std::array<std::string_view, 4> rank_names{"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                       "PMI_RANK", "SLURM_PROCID"};
  for (const std::string_view name : rank_names) {
    if (const auto rank = environment(name)) return *rank == "0";
  }
  return true;
}

}  // namespace isoscale::system
