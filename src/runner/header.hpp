// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <span>

#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "results/run_data.hpp"
#include "runner/site.hpp"

/// What a run file says of its launch as a whole.
namespace isoscale::runner {

/// Where the run of `config` is written to: the name that was given, or one made of workloads,
/// `host` and the time now.
[[nodiscard]] std::filesystem::path output_path(const config::RunConfig& config,
                                                const std::string& host);

/// Everything of a run but its points and its end, with a new identity. `facts` and `software` by
/// rank.
[[nodiscard]] results::RunData make_header(const config::RunConfig& config, const Site& site,
                                           const executor::Description& device,
                                           std::span<const machine::MachineFacts> facts,
                                           std::span<const RankSoftware> software);

}  // namespace isoscale::runner
