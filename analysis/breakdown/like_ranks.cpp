// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/like_ranks.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "mesh/mesh.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;

/// What of a mesh is kept along one axis.
struct Kept {
  std::vector<int> coordinates;  ///< the first of those that are alike, ascending
  std::vector<int> place;        ///< of each coordinate, in `coordinates`
};

mesh::AxisSet axes_of_messages(const program::OutlineSet& set) {
  std::uint8_t bits = 0;
  for (const program::Outline& outline : set.outlines) {
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      bits = static_cast<std::uint8_t>(bits | mesh::AxisSet{transfer.axis}.bits());
    }
  }
  return mesh::AxisSet::from_bits(bits);
}

Kept kept_along(Axis axis, const program::OutlineSet& set, const simulate::Costs& costs,
                mesh::AxisSet messages) {
  Kept kept;
  const int extent = set.mesh[axis];
  // What ranks of a coordinate play, in the order of the other axes.
  std::vector<std::vector<std::uint64_t>> played(static_cast<std::size_t>(extent));
  if (extent > 1 && !messages.contains(axis)) {
    const int stride = mesh::stride(set.mesh, axis);
    for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
      const auto at = rank / static_cast<std::size_t>(stride) % played.size();
      played[at].push_back(std::uint64_t{set.outline_of_rank[rank]} << 32U |
                           costs.table_of_rank[rank]);
    }
  } else {
    for (std::size_t at = 0; at < played.size(); ++at) played[at].push_back(at);
  }
  std::map<std::vector<std::uint64_t>, int> known;
  for (int at = 0; at < extent; ++at) {
    const auto [found, is_new] = known.emplace(std::move(played[static_cast<std::size_t>(at)]),
                                               static_cast<int>(kept.coordinates.size()));
    if (is_new) kept.coordinates.push_back(at);
    kept.place.push_back(found->second);
  }
  return kept;
}

}  // namespace

LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs) {
  const mesh::AxisSet messages = axes_of_messages(set);
  std::array<Kept, mesh::axis_count> kept;
  std::array<int, mesh::axis_count> extents{};
  for (const Axis axis : mesh::all_axes) {
    const auto at = static_cast<std::size_t>(axis);
    kept[at] = kept_along(axis, set, costs, messages);
    extents[at] = static_cast<int>(kept[at].coordinates.size());
  }
  const mesh::Shape shape{
      .tp = extents[0], .cp = extents[1], .ep = extents[2], .dp = extents[3], .pp = extents[4]};
  LikeRanks like{.set = {.mesh = shape, .outlines = set.outlines, .outline_of_rank = {}},
                 .costs = {.tables = std::move(costs.tables), .table_of_rank = {}},
                 .rank = {}};
  like.set.outline_of_rank.resize(static_cast<std::size_t>(shape.size()));
  like.costs.table_of_rank.resize(like.set.outline_of_rank.size());
  for (std::size_t rank = 0; rank < set.outline_of_rank.size(); ++rank) {
    const mesh::Coordinates whole = mesh::coordinates(set.mesh, static_cast<int>(rank));
    const auto place = [&](Axis axis) {
      return kept[static_cast<std::size_t>(axis)].place[static_cast<std::size_t>(whole[axis])];
    };
    const mesh::Coordinates mine{.tp = place(Axis::tp),
                                 .cp = place(Axis::cp),
                                 .ep = place(Axis::ep),
                                 .dp = place(Axis::dp),
                                 .pp = place(Axis::pp)};
    const auto at = static_cast<std::size_t>(mesh::rank_at(shape, mine));
    like.rank.push_back(static_cast<std::uint32_t>(at));
    like.set.outline_of_rank[at] = set.outline_of_rank[rank];
    like.costs.table_of_rank[at] = costs.table_of_rank[rank];
  }
  return like;
}

}  // namespace isoscale::analysis
