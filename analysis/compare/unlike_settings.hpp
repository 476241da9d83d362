// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// Finds the settings in which two curves differ, so that they cannot be compared, and renders them
/// as sentences.
namespace isoscale::analysis::compare {

/// Returns "dtype: f32 in A (a.h5), bf16 in B (b.h5); dp, tiny, ...: 4 ranks". Texts of files in it
/// are escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);
/// Returns this text for several rank counts; for the whole curve if `ranks` is empty.
[[nodiscard]] std::string text_of(const Unlike& unlike, const std::vector<int>& ranks);

/// Returns the differences between the experiments of two curves, then between their points with
/// the same rank count. Compared are executor, model with its numbers, element type, scaling,
/// placement, options and settings; for points mesh, options, labels and injected faults. The names
/// of the sides are still empty.
[[nodiscard]] std::vector<Unlike> differences_between(const merge::JoinedCurve& here,
                                                      const merge::JoinedCurve& there);

/// Returns unintended differences between curves of one side and one experiment: machines, and
/// labels of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const merge::JoinedCurve& here,
                                                     const merge::JoinedCurve& there);

/// Returns an entry for each launch of a curve that fails verification; `there` names the launch.
[[nodiscard]] std::vector<Unlike> not_verified(const merge::JoinedCurve& curve);

/// Returns the files of the launches that have points on a curve; only those of one rank count, if
/// it is given.
[[nodiscard]] std::vector<std::string> files_of(const merge::JoinedCurve& curve,
                                                std::optional<int> ranks = std::nullopt);

/// Returns all differences in few lines. Differences that all curves of a side have come first and
/// once, "dtype: f32 in A (a.h5), bf16 in B (b.h5); all 4 curves"; the others follow curve by
/// curve, where rank counts with the same text share a line. Texts of files are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis::compare
