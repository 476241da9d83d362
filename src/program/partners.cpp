// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/partners.hpp"

namespace isoscale::program {

std::vector<int> partners(const Op& op, const mesh::Shape& mesh, int rank) {
  std::vector<int> others;
  if (const auto* const collective = std::get_if<Collective>(&op.payload)) {
    others = mesh::group_members(mesh, rank, collective->axes);
  } else if (const auto* const exchange = std::get_if<Exchange>(&op.payload)) {
    for (const Transfer& transfer : exchange->transfers) {
      others.push_back(mesh::neighbour(mesh, rank, transfer.axis, transfer.offset));
    }
  }
  return others;
}

}  // namespace isoscale::program
