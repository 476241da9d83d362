// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace isoscale::analysis {

/// How much of a point its pictures have, at most.
struct DetailLimits {
  std::size_t steps = 1000;      ///< entries of the series of steps
  std::size_t spans = 4000;      ///< of the timeline, over all lanes
  std::size_t columns = 200;     ///< of the cells of the rank map
  std::size_t samples = 200;     ///< of a line of a device
  std::size_t rows = 256;        ///< of the rank map
  std::size_t devices = 16;      ///< of a quantity
  std::size_t fewest_lanes = 8;  ///< of the timeline, where there are no stages
  std::size_t most_lanes = 32;   ///< of the timeline, however many stages there are

  bool operator==(const DetailLimits&) const = default;
};

/// Sentences about what was thinned out or left out; those of one kind are for several points.
using PageNotes = std::vector<std::string>;

}  // namespace isoscale::analysis
