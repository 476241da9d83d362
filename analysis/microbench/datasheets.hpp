// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "results/records/run_data.hpp"

/// The peaks of GPUs by their datasheets.
namespace isoscale::analysis::microbench {

/// The peaks by a GPU's datasheet. Figures that are not known are absent.
struct Datasheet {
  std::string_view gpu;                ///< part of the name that the driver reports
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink
  std::string_view source{};

  /// Returns the dense peak of an element type, by its name in programs; absent where it is
  /// unknown.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// Returns all known datasheets. Of several that match a GPU's name, the first counts.
[[nodiscard]] std::span<const Datasheet> datasheets();

/// Returns the entry for a GPU by its name; null without one.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Returns the entry for a rank's GPU by the rank's facts. Null for CPUs, and for partitions of a
/// GPU (MIG), which reach only a share of its peaks.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

}  // namespace isoscale::analysis::microbench
