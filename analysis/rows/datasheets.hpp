// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "results/run_data.hpp"

/// What makers promise. Unknown stays unknown: a figure that is not in the table is absent.
namespace isoscale::analysis {

struct Datasheet {
  std::string_view gpu;                ///< part of the name that the driver gives
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink
  std::string_view source{};

  /// Dense peak of an element type as programs name it; absent where unknown.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// All that is known, the first match counts.
[[nodiscard]] std::span<const Datasheet> datasheets();

/// The entry of a GPU by its name; null without one.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Likewise by the facts of a rank. Null for CPUs, and for parts of a GPU (MIG), which reach a
/// share of it only.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);

}  // namespace isoscale::analysis
