// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "config/run_config.hpp"
#include "runner/plan.hpp"

namespace isoscale::runner {

/// FLOP/s that a GPU of this compute capability (90 = 9.0; 0 = unknown) may be expected to reach in
/// bf16 or f16: about half of the peak in data sheets for dense matrices.
[[nodiscard]] double half_precision_rate(int compute_capability);

/// Returns `asked` with the work chosen that suits this site's GPUs, and one line that says which
/// model was chosen and why ("" if there was nothing to choose). On GPUs a suite's work for them
/// (config::GpuWork) takes the place of its model, type and options, as if the user had named it:
/// the first model whose dp program of one rank fits into the memory of a GPU, and whose step with
/// a sample for every rank is short enough at Site::half_precision_rate; else the last. The batch
/// is then the largest power of two whose step is. bf16 is f16 where GPUs lack it. The same on
/// every rank.
[[nodiscard]] std::pair<config::RunConfig, std::string> with_gpu_work(
    const config::RunConfig& asked, const Site& site);

}  // namespace isoscale::runner
