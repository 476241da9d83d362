// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/findings/rule.hpp"
#include "mesh/mesh.hpp"
#include "results/run_data.hpp"

/// What several rules ask of a point.
namespace isoscale::analysis {

/// An option as text; "" where the workload has none of that name.
[[nodiscard]] std::string option_of(const results::PointData& point, const std::string& key);
/// An option, or a number of the model, as a whole number of at least 1; absent where it is none.
[[nodiscard]] std::optional<double> count_option(const results::PointData& point,
                                                 const std::string& key);
[[nodiscard]] std::optional<double> model_number(const results::PointData& point,
                                                 const std::string& key);

/// What communicates along an axis, by itself or with others; seconds of the traced step.
[[nodiscard]] Breakdown communication_along(const BreakdownResult& breakdown, mesh::Axis axis);

/// The part of the traced step that GEMMs take on an average rank; absent without traces.
[[nodiscard]] std::optional<double> gemm_share(const PointReport& point);

/// FLOP/s of the point's GEMMs played without communication, over the traced ranks that have solo
/// times; of a point without these, as traced (absent too where nothing was).
struct GemmSpeed {
  double rate = 0;         ///< FLOP/s of one rank
  double flop_of_one = 0;  ///< mean over GEMMs
  bool alone = false;      ///< from solo times
};
[[nodiscard]] std::optional<GemmSpeed> gemm_speed(const PointReport& point);

/// "rank 3 (node17)", MPI's rank of a rank of the point; without the host where it is not known.
[[nodiscard]] std::string short_place(const results::RunData& run, const results::PointData& point,
                                      int rank);

}  // namespace isoscale::analysis
