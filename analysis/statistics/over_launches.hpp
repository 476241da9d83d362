// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

#include "analysis/statistics/statistics.hpp"

/// What several launches of the same point say. Launches are what is independent: the steps inside
/// one share its placement, its buffers and its neighbours on the network.
namespace isoscale::analysis {

/// The median of the launches' median times, `samples` of them. From 3 on with the t-interval of
/// 95% for the centre of their logarithms (Georges, Buytaert, Eeckhout: Statistically rigorous Java
/// performance evaluation, OOPSLA 2007, on few starts of a program; logarithms because times are
/// positive and launches differ by factors). Absent without any, and unless all are finite and > 0.
[[nodiscard]] std::optional<Estimate> over_launches(std::span<const double> medians);

/// (maximum - minimum) / median over launches; absent below 2.
[[nodiscard]] std::optional<double> launch_spread(const Estimate& launches);

}  // namespace isoscale::analysis
