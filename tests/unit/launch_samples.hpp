// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/catalog/index.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/report.hpp"
#include "matchers.hpp"
#include "report_samples.hpp"

/// Hand-made launches for the tests of what joins them.
namespace isoscale::samples {

/// A launch of `nodes` nodes with `per_node` ranks each, and no point yet.
inline results::RunData launch(const std::string& id, int nodes, int per_node) {
  results::RunData result = run();
  result.id = id;
  result.nodes = nodes;
  result.ranks = nodes * per_node;
  result.rank_facts.clear();
  for (int rank = 0; rank < result.ranks; ++rank) {
    const int node = rank / per_node;
    result.rank_facts.push_back({.rank = rank,
                                 .host = "node" + std::to_string(node),
                                 .node = node,
                                 .text = {{"cpu_model", "AMD EPYC 7763"}}});
  }
  return result;
}

/// Adds a point that is ok: `shape` on the first ranks of the launch, `step` seconds a step.
inline results::PointData& add(results::RunData& run, mesh::Shape shape, double step) {
  results::PointData point = measured(static_cast<int>(run.points.size()), shape, step);
  const int per_node = run.ranks / run.nodes;
  point.nodes = (point.ranks + per_node - 1) / per_node;
  point.model_shape = {{"hidden", "64"}, {"heads", "8"}, {"layers", "4"}};
  run.points.push_back(std::move(point));
  return run.points.back();
}

/// A launch with one point along dp.
inline results::RunData launch_of(const std::string& id, int nodes, int per_node, double step) {
  results::RunData result = launch(id, nodes, per_node);
  add(result, {.dp = result.ranks}, step);
  return result;
}

/// Three launches on one node, the second of which is the typical one.
inline std::vector<results::RunData> three_launches() {
  return {launch_of("a1", 1, 4, 0.0410), launch_of("a2", 1, 4, 0.0400),
          launch_of("a3", 1, 4, 0.0396)};
}

/// Reports of launches and what they make together; keeps the launches, which the rest points to.
struct JoinedLaunches {
  std::vector<results::RunData> runs;
  std::vector<analysis::RunReport> reports{};
  analysis::merge::Joined joined{};

  explicit JoinedLaunches(std::vector<results::RunData> of,
                          const analysis::ReportOptions& options = {})
      : runs(std::move(of)) {
    reports = mapped(runs, [&](const results::RunData& run) {
      return analysis::make_report(run, run.id + ".h5", options);
    });
    joined = analysis::merge::join(reports, options);
  }
  JoinedLaunches(const JoinedLaunches&) = delete;
  JoinedLaunches& operator=(const JoinedLaunches&) = delete;

  [[nodiscard]] analysis::merge::Report report() const {
    const auto of_index = mapped(reports, analysis::catalog::index_run);
    return {.runs = reports, .joined = joined, .index = analysis::catalog::make_index(of_index)};
  }
};

}  // namespace isoscale::samples
