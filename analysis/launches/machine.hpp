// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What a launch ran on and with, by name: CPU, GPU and their drivers and libraries, device, MPI,
/// Isoscale, and recorded environment variables that bear on times (see settings.hpp). Times of
/// launches that differ in any of it are those of different machines. What is not known, or not
/// set, is absent.
using Machine = std::map<std::string, std::string>;

[[nodiscard]] Machine machine_of(const results::RunData& run);

/// "CPU: A here, B there; MPI: ..."; "" for like machines.
[[nodiscard]] std::string differences(const Machine& here, const Machine& there);

}  // namespace isoscale::analysis
