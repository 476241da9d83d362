// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <tuple>

#include "results/run_data.hpp"

/// Whether what was read is what was written.
namespace isoscale::fault {

/// Without the outlines' ops, of which the shape is enough.
inline bool same(const results::PointData& a, const results::PointData& b) {
  const auto facts = [](const results::PointData& point) {
    return std::tie(point.index, point.workload, point.model, point.dtype, point.mesh, point.ranks,
                    point.nodes, point.scaling, point.placement, point.options, point.model_shape,
                    point.seed, point.labels, point.status, point.reason, point.verified,
                    point.verification);
  };
  const auto numbers = [](const results::PointData& point) {
    return std::tie(point.flop_of_rank, point.memory_of_rank, point.peak_live_microbatches,
                    point.world_rank, point.folded, point.graph, point.gemm_choices,
                    point.communicators, point.step_times, point.warm_up_steps, point.traced,
                    point.dropped, point.stopped_because, point.looks, point.injections,
                    point.clock_offset, point.clock_error, point.clock_drift, point.solo_times,
                    point.op_sums, point.device_series, point.rows, point.ended);
  };
  const auto spans = [](const results::PointData& point) {
    std::vector<timeline::Span> all;
    for (const timeline::Timeline& trace : point.traces) {
      for (const timeline::StepTrace& step : trace.ranks) {
        all.insert(all.end(), step.spans.begin(), step.spans.end());
      }
    }
    return all;
  };
  const auto ops = [](const results::PointData& point) {
    std::vector<std::size_t> sizes{point.outline.outline_of_rank.size()};
    for (const program::Outline& outline : point.outline.outlines) {
      sizes.insert(sizes.end(), {outline.ops.size(), outline.waits.size(), outline.streams.size()});
    }
    return sizes;
  };
  return facts(a) == facts(b) && numbers(a) == numbers(b) && spans(a) == spans(b) &&
         ops(a) == ops(b);
}

/// Without points and how the run ended.
inline bool same_header(const results::RunData& a, const results::RunData& b) {
  const auto facts = [](const results::RunData& run) {
    return std::tie(run.id, run.created, run.isoscale_version, run.git_hash, run.compiler,
                    run.build_type, run.device, run.device_detail, run.mpi_library,
                    run.command_line, run.config_toml, run.ranks, run.nodes, run.environment,
                    run.preflight);
  };
  const auto of_ranks = [](const results::RunData& run) {
    std::vector<std::tuple<int, std::string, int, std::map<std::string, std::string>,
                           std::map<std::string, double>>>
        all;
    for (const results::RankFacts& rank : run.rank_facts) {
      all.emplace_back(rank.rank, rank.host, rank.node, rank.text, rank.number);
    }
    return all;
  };
  return facts(a) == facts(b) && of_ranks(a) == of_ranks(b);
}

}  // namespace isoscale::fault
