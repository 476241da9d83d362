// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "mesh/request.hpp"
#include "workloads/workload.hpp"

/// How a request for tiles follows the mesh: image, batch, limits, twin.
namespace isoscale::workloads::tiles {

[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Strong: the image is cut into cp x tp tiles, the batch dealt out over dp. Weak: each tile is as
/// large as the image given, each dp replica has the batch given. Throws base::UsageError, with the
/// numbers and what works, for a batch that does not divide, tiles smaller than the halo, tiles
/// beyond what one product can count, and fp8.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Same grid, boundary, kernel and optimizer; small tiles, few channels, layers and samples.
[[nodiscard]] Request twin(const Request& request);
/// The whole image on one rank, in f64.
[[nodiscard]] Request reference(const Request& twin);
/// Pixels per step over all ranks.
[[nodiscard]] double work_per_step(const Request& request);

/// The most square grid; its longer side, if any, along cp, where halos need no packing.
[[nodiscard]] mesh::Request square_grid(int ranks);

}  // namespace isoscale::workloads::tiles
