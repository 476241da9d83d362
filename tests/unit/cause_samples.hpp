// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "report_samples.hpp"

/// Hand-made points with traced steps for the tests of causes.
namespace isoscale::samples {

/// All ranks of the point play the same program, that of rank 0.
inline results::PointData alike(results::PointData point) {
  point.outline.outlines.resize(1);
  point.outline.outline_of_rank.assign(static_cast<std::size_t>(point.ranks), 0);
  return point;
}

/// A point without steps, on which all ranks play `script`.
inline results::PointData alike(const mesh::Shape& shape, const Script& script) {
  results::PointData result =
      alike(point(shape, std::vector<Script>(static_cast<std::size_t>(shape.size()), script), {}));
  result.traces.clear();
  return result;
}

/// Begin and end of each op of a rank.
using Spans = std::vector<std::pair<int, int>>;

/// A point that is ok, on which all ranks play `script` in a traced step of 1000 ns. Rank r has
/// spans[r % spans.size()]; ranks whose spans are empty were not traced.
inline results::PointData traced_point(const mesh::Shape& shape, const Script& script,
                                       const std::vector<Spans>& spans) {
  timeline::Timeline traced;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const Spans& own = spans[static_cast<std::size_t>(rank) % spans.size()];
    if (!own.empty()) traced.ranks.push_back(trace(rank, {0, 1000}, own));
  }
  results::PointData program = alike(shape, script), made = measured(0, shape, 1e-6);
  program.traces = {std::move(traced)};
  set_trace(made, std::move(program));
  add_traced_steps(made, 1e-6, 1.0);
  return made;
}

/// Adds a traced step, numbered as the next.
inline void add_step(results::PointData& point, timeline::Timeline step) {
  const auto number = static_cast<std::uint32_t>(point.traces.size());
  for (timeline::StepTrace& rank : step.ranks) rank.step = number;
  point.traces.push_back(std::move(step));
}

/// Adds the sums of 20 traced steps, in which the GEMMs of rank `slow` take `factor` times as long
/// from step `first` on.
inline void add_gemm_sums(results::PointData& point, int slow, double factor, int first = 0) {
  for (int step = 0; step < 20; ++step) {
    results::OpSums& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(step);
    for (int rank = 0; rank < point.ranks; ++rank) {
      // A spread that is the same in every test, and no two samples alike.
      const double jitter = 1 + 0.001 * ((step * 7 + rank * 3) % 11);
      sums.gemm.push_back(jitter * (rank == slow && step >= first ? factor : 1));
    }
  }
}

/// Returns the times of a rank's ops when played alone; nanoseconds by op.
inline results::SoloTimes solo(int rank, const std::vector<int>& times) {
  results::SoloTimes result{.rank = rank};
  for (const int time : times) result.op.emplace_back(time);
  return result;
}

}  // namespace isoscale::samples
