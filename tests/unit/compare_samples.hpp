// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/compare/comparison.hpp"
#include "analysis_test.hpp"

/// Hand-made sides for the tests of comparisons, which find their names here.
namespace isoscale::samples {

/// The launches of each side with their reports, and what they are compared to be.
class Compared {
 public:
  explicit Compared(std::vector<std::vector<results::RunData>> sides,
                    const analysis::compare::CompareOptions& options = {})
      : runs_(std::move(sides)) {
    const analysis::ReportOptions of_launch{.rates_of_wrong = options.anyway};
    for (const auto& side : runs_) {
      reports_.push_back(mapped(side, [&](const results::RunData& run) {
        return analysis::make_report(run, run.id + ".h5", of_launch);
      }));
    }
    comparison_ = analysis::compare::compare({reports_.begin(), reports_.end()}, options);
  }
  Compared(const Compared&) = delete;
  Compared& operator=(const Compared&) = delete;

  const analysis::compare::Comparison& operator*() const { return comparison_; }
  const analysis::compare::Comparison* operator->() const { return &comparison_; }

 private:
  std::vector<std::vector<results::RunData>> runs_;
  std::vector<std::vector<analysis::RunReport>> reports_;
  analysis::compare::Comparison comparison_;
};

/// A side of launches whose step takes `factor` times what it takes where that is 1: 1 rank 80 ms,
/// 2 ranks 50 ms, 4 ranks 30 ms.
inline std::vector<results::RunData> side(const std::string& name,
                                          const std::vector<double>& factors) {
  std::vector<results::RunData> runs;
  for (const double factor : factors) {
    runs.push_back(launch(name + std::to_string(runs.size() + 1), 1, 4));
    add(runs.back(), {}, 0.080 * factor);
    add(runs.back(), {.dp = 2}, 0.050 * factor);
    add(runs.back(), {.dp = 4}, 0.030 * factor);
  }
  return runs;
}

/// Three launches whose logarithms lie 0.01 apart.
inline std::vector<double> around(double factor) {
  return {factor * std::exp(-0.01), factor, factor * std::exp(0.01)};
}

/// A side that takes `factor` times as long as side("a", around(1)), unless points are changed.
inline std::vector<results::RunData> side_b(double factor = 1) { return side("b", around(factor)); }

/// The launches of side A and another side.
inline std::vector<std::vector<results::RunData>> against_a(std::vector<results::RunData> other) {
  return {side("a", around(1)), std::move(other)};
}

/// Does something to every point of every launch.
template <class Change>
std::vector<results::RunData> changed(std::vector<results::RunData> runs, const Change& change) {
  for (results::RunData& run : runs) {
    for (results::PointData& point : run.points) change(point);
  }
  return runs;
}

/// Gives a point of one rank or two a trace as long as its step: GEMMs, an all-reduce that takes
/// `transfer` seconds, GEMMs; the second rank comes `late` seconds late to it. One rank has no
/// all-reduce, and both are 0.
inline void trace_step(results::PointData& data, double step, double transfer, double late) {
  const auto ns = [](double seconds) { return static_cast<int>(std::lround(seconds * 1e9)); };
  const bool alone = data.ranks == 1;
  const int end = ns(step), sent = ns(transfer), first = (end - sent) / 2;
  const int left = first + ns(late) + sent;  // when both ranks leave the all-reduce
  Script script;
  script.compute();
  if (!alone) script.all_reduce(mesh::Axis::dp);
  script.compute();
  timeline::Timeline timeline;
  for (int rank = 0; rank < data.ranks; ++rank) {
    const int begin = first + (rank == 1 ? ns(late) : 0);
    Spans spans{{0, begin}};
    if (!alone) spans.emplace_back(begin, left);
    spans.emplace_back(left, end);
    timeline.ranks.push_back(trace(rank, {0, end}, spans));
  }
  const std::vector<Script> scripts(static_cast<std::size_t>(data.ranks), script);
  set_trace(data, point(data.mesh, scripts, std::move(timeline)));
  add_traced_steps(data, step, 1);
}

/// Three traced launches of 1 and 2 ranks, 80 ms and `step` seconds, of which `transfer` go into
/// the all-reduce and `late` into waiting for its second rank.
inline std::vector<results::RunData> traced_side(const std::string& name, double step,
                                                 double transfer, double late) {
  std::vector<results::RunData> runs;
  const std::vector<double> factors = around(1);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    runs.push_back(launch(name + std::to_string(i + 1), 1, 2));
    const double one = factors[i], two = factors[(i + 1) % factors.size()];
    trace_step(add(runs.back(), {}, 0.080 * one), 0.080 * one, 0, 0);
    trace_step(add(runs.back(), {.dp = 2}, step * two), step * two, transfer * two, late * two);
  }
  return runs;
}

/// Two traced sides; B loses more to its network and to waiting.
inline std::vector<results::RunData> traced_a() { return traced_side("a", 0.050, 0.006, 0.002); }
inline std::vector<results::RunData> traced_b() { return traced_side("b", 0.056, 0.011, 0.003); }

/// Changes of points for changed().
inline void make_bf16(results::PointData& at) { at.dtype = "bf16"; }
inline void make_oversubscribed(results::PointData& at) { at.labels = {"oversubscribed"}; }

/// Adds a curve along tp to every launch of a side.
inline void add_tp_curve(std::vector<results::RunData>& runs) {
  for (results::RunData& run : runs) {
    for (const int tp : {1, 2, 4}) add(run, {.tp = tp}, 0.1 / tp).workload = "tp";
  }
}

}  // namespace isoscale::samples
