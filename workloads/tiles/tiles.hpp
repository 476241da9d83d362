// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "mesh/request.hpp"
#include "program/program.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::tiles {

[[nodiscard]] std::span<const OptionSpec> option_table();

// These functions fit a request for tiles to the mesh: image, batch, limits and twin.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. Strong: the image is cut into cp x tp tiles, and the batch is split
/// over dp. Weak: each tile is as large as the given image, and each dp replica has the given
/// batch. Throws base::UsageError, with the numbers and what works, for a batch that does not
/// divide, tiles smaller than the halo, tiles beyond what one product can count, and fp8.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Returns a twin with the same grid, boundary, kernel and optimizer, but small tiles and few
/// channels, layers and samples.
[[nodiscard]] Request twin(const Request& request);
/// Returns the request for the whole image on one rank, in f64.
[[nodiscard]] Request reference(const Request& twin);
/// Returns the pixels per step over all ranks.
[[nodiscard]] double work_per_step(const Request& request);

/// Returns the most square grid; its longer side, if any, is along cp, where halos need no packing.
[[nodiscard]] mesh::Request square_grid(int ranks);

/// Builds a stack of convolutions over image tiles: Y = X + g * conv(X) in each layer, with loss
/// 1/2 |Y|^2 of the last and without activations. There is one program for all ranks; under a fixed
/// boundary one for each of the at most nine positions that a tile may have in the image.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::tiles
