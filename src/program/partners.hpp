// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "mesh/mesh.hpp"
#include "program/op.hpp"

namespace isoscale::program {

/// The ranks of a mesh that `rank` communicates with in an op: the members of a collective's group,
/// itself included, and the other end of each message of an exchange; none of other ops.
[[nodiscard]] std::vector<int> partners(const Op& op, const mesh::Shape& mesh, int rank);

}  // namespace isoscale::program
