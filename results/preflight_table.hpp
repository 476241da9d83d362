// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/hdf5.hpp"
#include "results/run_data.hpp"

namespace isoscale::results {

/// Writes what preflight looked at and said into a group that is empty: a column per field of
/// preflight::CheckResult, and the facts.
void put_preflight(hdf5::Group& group, const PreflightData& preflight);
/// Throws base::Error when something is missing or does not fit together.
[[nodiscard]] PreflightData get_preflight(const hdf5::Group& group, int minor);

}  // namespace isoscale::results
