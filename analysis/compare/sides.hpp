// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis::compare {

/// Returns names for sides that the user did not name, from the first source whose names are short
/// and all different: file names (or the common beginning of a side's file names), folders, GPUs,
/// CPUs, hosts. Returns an empty list if there is none; join_sides() then uses letters.
[[nodiscard]] std::vector<std::string> default_names(
    const std::vector<std::span<const RunReport>>& sides);

/// Returns the kinds of machines that the side's launches ran on, by their names in a run index.
[[nodiscard]] std::vector<std::string> machine_names(const Side& side);

/// Joins the launches of each side; without `names` the sides are "A", "B", ... Throws
/// base::UsageError where a run, by its id or file, is on two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                                           const std::vector<std::string>& names);

/// Fills in the compared curves, the unlike settings, and the curves and points that only one side
/// has. Throws base::UsageError where a side has no curve in common with the first, or where no
/// curve has the baseline that was asked for.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

// The following find the settings whose differences make two curves incomparable, and render them
// as sentences.

/// Returns "dtype: f32 in A (a.h5), bf16 in B (b.h5); dp, tiny, ...: 4 ranks". Texts from files are
/// escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);

/// Returns the differences between the experiments of two curves, then between their points with
/// the same rank count. For experiments it compares executor, model with its numbers, element type,
/// scaling, placement, options and settings; for points it compares mesh, options, labels and
/// injected faults. The caller fills in the names of the sides.
[[nodiscard]] std::vector<Unlike> differences_between(const merge::JoinedCurve& here,
                                                      const merge::JoinedCurve& there);

/// Returns unintended differences between curves of one experiment on one side: different machines,
/// and different labels of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const merge::JoinedCurve& here,
                                                     const merge::JoinedCurve& there);

/// Returns an entry for each launch of a curve that fails verification; `there` names the launch.
[[nodiscard]] std::vector<Unlike> not_verified(const merge::JoinedCurve& curve);

/// Returns all differences in few lines. A difference that all curves of a side have comes first,
/// in one line, "dtype: f32 in A (a.h5), bf16 in B (b.h5); all 4 curves". The others follow curve
/// by curve; rank counts with the same text share a line. Texts from files are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis::compare
