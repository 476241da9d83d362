// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/program.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::tiles {

/// A stack of convolutions over image tiles: Y = X + g * conv(X) in each layer, loss 1/2 |Y|^2 of
/// the last, without activations. One program for all ranks; under a fixed boundary one for each of
/// the at most nine places that a tile may have in the image.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::tiles
