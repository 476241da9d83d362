// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// When a series stopped being what it was.
namespace isoscale::analysis {

struct ChangePoint {
  std::size_t first = 0;   ///< the first sample after the change; 0 < first < n
  double probability = 0;  ///< of so clear a change among samples that never changed
};

/// The most likely place of one change of level (Pettitt: Appl. Statist. 28, 1979): with mid-ranks
/// R_i, K is the largest |2 (R_1 + ... + R_t) - t (n + 1)|, and the probability is about
/// 2 exp(-6 K^2 / (n^3 + n^2)). It takes samples as independent. Absent below 2 samples and for
/// what is not finite.
[[nodiscard]] std::optional<ChangePoint> change_point(std::span<const double> samples);

/// A change that counts: improbable by chance (below 1%), and the medians of the two sides differ
/// by more than `smallest`, relative to the later one. Returns the first sample after the last such
/// change, looked for again and again in what follows the one found; 0 = none. Nothing can be seen
/// in fewer than 16 samples.
[[nodiscard]] std::size_t last_change(std::span<const double> samples, double smallest);

}  // namespace isoscale::analysis
