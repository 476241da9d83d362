// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What a launch was told for all its points and their times depend on, as text by name: fill,
/// graph, gemm_algorithms, blas_threads, host_streams. What its configuration leaves out has its
/// default; empty where the configuration cannot be read and no point played a graph.
[[nodiscard]] std::map<std::string, std::string> settings_of(const results::RunData& run);

/// Whether an environment variable bears on how ranks communicate, where they are bound and how
/// many threads they have. Those that name a job, a rank, a device or a log do not.
[[nodiscard]] bool bears_on_times(std::string_view variable);

/// The recorded environment variables that bear on times, with their values.
[[nodiscard]] std::map<std::string, std::string> environment_of(const results::RunData& run);

}  // namespace isoscale::analysis
