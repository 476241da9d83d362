// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// Settings in which two curves differ, so that they cannot be compared, and the sentences that say
/// so.
namespace isoscale::analysis {

/// "dtype: f32 in A (a.h5), bf16 in B (b.h5); dp, tiny, ...: 4 ranks". Texts of files in it are
/// escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);
/// The same of several rank counts; of the whole curve with none.
[[nodiscard]] std::string text_of(const Unlike& unlike, const std::vector<int>& ranks);

/// The differences between the experiments of two curves, then between their points of as many
/// ranks: executor, model with its numbers, element type, scaling, placement, options, settings;
/// mesh, options, labels, what was injected. Ends have no side yet.
[[nodiscard]] std::vector<Unlike> differences_between(const JoinedCurve& here,
                                                      const JoinedCurve& there);

/// The differences between curves of one side, which are of one experiment, that nobody asked for:
/// machines, and labels of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const JoinedCurve& here,
                                                     const JoinedCurve& there);

/// Launches of a curve whose results do not verify; `there` tells which.
[[nodiscard]] std::vector<Unlike> not_verified(const JoinedCurve& curve);

/// Files of the launches that a curve has points of; of one rank count, where given.
[[nodiscard]] std::vector<std::string> files_of(const JoinedCurve& curve,
                                                std::optional<int> ranks = std::nullopt);

/// All differences in as few lines as it takes: those of all curves that a side has once and first,
/// "dtype: f32 in A (a.h5), bf16 in B (b.h5); all 4 curves"; then what is left, curve by curve,
/// with rank counts that say the same on one line. Texts of files are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis
