// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/trace_choice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace isoscale::runner {
namespace {

using mesh::Axis;

/// What each axis keeps of its extent, by Axis.
using Extents = std::array<int, mesh::axis_count>;

int& extent(Extents& extents, Axis axis) { return extents[static_cast<std::size_t>(axis)]; }

Extents kept(const mesh::Shape& shape, int most) {
  Extents extents{};
  for (const Axis axis : mesh::all_axes) extent(extents, axis) = shape[axis];
  int size = shape.size();
  for (const Axis axis : {Axis::dp, Axis::ep, Axis::cp, Axis::tp, Axis::pp}) {
    int& mine = extent(extents, axis);
    const int others = size / mine;
    mine = std::clamp(most / others, 1, mine);
    size = others * mine;
  }
  return extents;
}

}  // namespace

std::vector<int> traced_ranks(const mesh::Shape& shape, int most) {
  Extents extents = kept(shape, most);
  std::vector<int> ranks;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates at = mesh::coordinates(shape, rank);
    const bool is_kept = std::ranges::all_of(
        mesh::all_axes, [&](Axis axis) { return at[axis] < extent(extents, axis); });
    if (is_kept) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace isoscale::runner
