// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "mesh/mesh.hpp"

namespace isoscale::runner {

/// The ranks of a point whose spans are kept, ascending: all of them when they are no more than
/// `most`, else those of a part of the mesh: the first coordinates of each axis. dp is cut down
/// first, since its ranks do alike, then ep, cp and tp; pp last, since its stages each play a
/// program of their own. Never more than `most`, which is at least 1, and never none.
[[nodiscard]] std::vector<int> traced_ranks(const mesh::Shape& shape, int most);

}  // namespace isoscale::runner
