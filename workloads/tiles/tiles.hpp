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

// The functions below are members of Workload (workloads/api/workload.hpp) for tiles. limits()
// returns the numbers that axes of the mesh must divide.
[[nodiscard]] std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling);
/// Fits a request to a mesh. Strong scaling: the image is cut into cp x tp tiles, and the batch is
/// split over dp. Weak scaling: each tile has the size of the given image, and each dp replica has
/// the given batch. Throws base::UsageError, with the numbers and what would work, for a batch that
/// cannot be divided, for tiles smaller than the halo or too large for a GEMM, and for fp8.
[[nodiscard]] Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling);
/// Returns a twin, a small version of the request for verification. It has the same grid, boundary,
/// kernel and optimizer, but small tiles and few channels, layers and samples.
[[nodiscard]] Request twin(const Request& request);
/// Returns the request with which one rank computes the whole image of a twin in f64.
[[nodiscard]] Request reference(const Request& twin);
/// Returns the number of pixels of all ranks per step.
[[nodiscard]] double work_per_step(const Request& request);

/// Returns the grid that is closest to a square. If it is no square, its longer side is along cp,
/// where halos need not be packed.
[[nodiscard]] mesh::Request square_grid(int ranks);

/// Builds the programs of a training step of convolution layers on image tiles. Each layer computes
/// Y = X + g * conv(X), with g = 0.5 / layers. There are no activations between layers. The loss is
/// 1/2 |Y|^2 of the last layer. With a periodic boundary all ranks share one program. With a fixed
/// boundary there is one program for each position of a tile in the image (corner, edge or inside),
/// at most nine.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::tiles
