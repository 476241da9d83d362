// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "mesh/mesh.hpp"

namespace isoscale::mesh {

/// Whether the groups along an axis stay inside a node: alone = the axis has one rank, so nothing
/// goes along it; intra_node = every group is on one node; inter_node = no group is; mixed = some
/// are and some are not.
enum class Reach : std::uint8_t { alone, intra_node, inter_node, mixed };
/// "alone", "intra-node", "inter-node", "mixed"
[[nodiscard]] std::string_view name(Reach reach);

/// How far `axis` reaches when rank r of the mesh is on node `node_of_rank[r]`. Throws
/// std::invalid_argument unless there is a node for every rank.
[[nodiscard]] Reach reach(const Shape& shape, Axis axis, std::span<const int> node_of_rank);

/// Of all axes that have more than one rank: "tp intra-node, dp inter-node"; "" when there is none.
[[nodiscard]] std::string reach_text(const Shape& shape, std::span<const int> node_of_rank);

}  // namespace isoscale::mesh
