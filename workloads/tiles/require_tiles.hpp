// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

namespace isoscale::workloads::tiles {

/// Throws base::UsageError, with the numbers and what works, when a request that has been scaled
/// cannot be built: tiles smaller than the halo, tiles of more pixels than one product can count,
/// fp8.
void require_tiles(const Request& scaled);

}  // namespace isoscale::workloads::tiles
