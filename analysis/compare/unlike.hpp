// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/merge/join.hpp"

/// Why two curves cannot be compared: their settings differ.
namespace isoscale::analysis {

/// One end of a difference; without a side where there is nothing to say of it.
struct UnlikeEnd {
  std::string side;                ///< "A"
  std::string value;               ///< "f32"
  std::vector<std::string> files;  ///< that say so
};

/// One thing that is not the same; a line of its own in every report.
struct Unlike {
  std::string what;  ///< "dtype", "option batch", "setting graph", "mesh", "labels", ...
  UnlikeEnd here{}, there{};
  std::optional<int> ranks{};  ///< of one point; absent = of the whole curve
  std::string title{};         ///< of the curve
  /// The curve it is of among those compared, and the side of `there`; absent where it is of none.
  std::optional<std::size_t> curve{};
  std::size_t side = 0;
};

/// "dtype: f32 in A (a.h5), bf16 in B (b.h5); dp, tiny, ...: 4 ranks". Texts of files in it are
/// escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);
/// The same of several rank counts; of the whole curve with none.
[[nodiscard]] std::string text_of(const Unlike& unlike, const std::vector<int>& ranks);

/// In what the experiments of two curves differ, and then in what their points of as many ranks do:
/// executor, model with its numbers, element type, scaling, placement, options, settings; mesh,
/// options, labels, what was injected. Ends have no side yet.
[[nodiscard]] std::vector<Unlike> differences_between(const JoinedCurve& here,
                                                      const JoinedCurve& there);

/// In what curves of one side, which are of one experiment, differ without that being asked for:
/// machines, and labels of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const JoinedCurve& here,
                                                     const JoinedCurve& there);

/// Launches of a curve whose results do not verify; `there` tells which.
[[nodiscard]] std::vector<Unlike> not_verified(const JoinedCurve& curve);

/// Files of the launches that a curve has points of; of one rank count, where given.
[[nodiscard]] std::vector<std::string> files_of(const JoinedCurve& curve,
                                                std::optional<int> ranks = std::nullopt);

/// The point of a curve by its rank count; null without one. Not owned.
[[nodiscard]] const PointReport* point_of(const Curve& curve, int ranks);

}  // namespace isoscale::analysis
