// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis::compare {

/// Returns names for sides that the user did not name: file names (or the common beginning of a
/// side's file names), folders, GPUs, CPUs or hosts, from the first of these that gives short names
/// that all differ. Returns an empty list if none does; join_sides() then uses letters.
[[nodiscard]] std::vector<std::string> default_names(
    const std::vector<std::span<const RunReport>>& sides);

/// Returns the names that catalog::make_index() gives to the machines of the side's launches, each
/// once.
[[nodiscard]] std::vector<std::string> machine_names(const Side& side);

/// Joins the launches of each side to curves; without `names` the sides are "A", "B", ... Throws
/// base::UsageError if a run, recognised by its id or file, is on two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                                           const std::vector<std::string>& names);

/// Fills in the compared curves, the unlike settings, and the curves and points that only one side
/// has. Throws base::UsageError if a side has no curve in common with the first, or if no curve has
/// the requested baseline.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

// The functions below find the settings whose differences make two curves incomparable, and render
// them as sentences.

/// Returns one difference as text: the setting, its value and files on each side, the title of
/// the curve and, unless the whole curve differs, the rank count of the point: "mesh: dp=4 in A
/// (a.h5), dp=2,tp=2 in B (b.h5); hybrid, tiny, f32, strong scaling, packed: 4 ranks". Texts
/// that come from result files are escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);

/// Returns the settings in which the experiments of two curves differ, then those in which their
/// points with the same rank count differ. For experiments it compares executor, model with its
/// sizes, element type, scaling, placement, options and settings; for points it compares mesh,
/// options, labels and injected faults. The caller fills in the names of the sides.
[[nodiscard]] std::vector<Unlike> differences_between(const merge::JoinedCurve& here,
                                                      const merge::JoinedCurve& there);

/// Returns unintended differences between two curves of one experiment on one side: different
/// machines, and different labels or injected faults of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const merge::JoinedCurve& here,
                                                     const merge::JoinedCurve& there);

/// Returns an entry for each point of a launch on this curve that has wrong results; `there` names
/// the launch's file.
[[nodiscard]] std::vector<Unlike> not_verified(const merge::JoinedCurve& curve);

/// Returns all differences in few lines. A difference that holds for all curves of a side comes
/// first, in one line: "dtype: f32 in A (a.h5), bf16 in B (b.h5); all 4 curves". The others follow
/// curve by curve; rank counts with the same text share a line. Texts that come from result files
/// are escaped.
[[nodiscard]] std::vector<std::string> unlike_lines(const Comparison& of);

}  // namespace isoscale::analysis::compare
