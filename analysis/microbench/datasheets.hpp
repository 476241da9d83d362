// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "results/records/run_data.hpp"

/// Lists the peak rates of GPUs from their datasheets.
namespace isoscale::analysis::microbench {

/// The peak rates in a GPU's datasheet. Unknown rates are absent.
struct Datasheet {
  std::string_view gpu;                ///< the driver's name of the GPU contains this text
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink
  std::string_view source{};

  /// Returns the dense peak for an element type such as "bf16"; absent if it is not known.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// Returns all known datasheets. If several match a GPU's name, the first one applies.
[[nodiscard]] std::span<const Datasheet> datasheets();

/// Returns the datasheet for the name of a GPU; null if there is none.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Returns the datasheet for the GPU in a rank's facts. Null for CPUs, and for partitions of a GPU
/// (MIG), which reach only a share of its peaks.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

}  // namespace isoscale::analysis::microbench
