// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "simulate/machine.hpp"

/// Matrix multiplication on a processor that its sheet describes.
namespace isoscale::simulate {

struct GemmShape {
  double m = 0, n = 0, k = 0, batch = 1;
  [[nodiscard]] double flop() const { return 2 * m * n * k * batch; }
};

/// Seconds without memory and launch. Where tiles and units are known, tiles of the output are
/// dealt to units in waves, the last of which may be short; the size and shape of tiles, and into
/// how many parts k is split, are those that take least.
[[nodiscard]] double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                                      const GemmShape& shape);

}  // namespace isoscale::simulate
