// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// The relative errors of estimated times that a search allows for; search() says how it uses them.
inline constexpr double search_slack = 0.06, search_margin = 0.01;
/// The relative error by which an estimate of memory may be too large. The worst estimate of 210
/// random combinations of mesh and options for six models was 21% above the program's memory (zb-h1
/// with a large vocabulary).
inline constexpr double search_memory_slack = 0.25;
/// The most candidates that a search returns.
inline constexpr std::size_t search_keeps = 10;

struct SearchResult {
  /// The fastest of the simulated candidates, at most `search_keeps`, fastest first.
  std::vector<Candidate> best;
  /// Number of combinations of mesh and options, impossible ones included.
  int looked_at = 0;
  /// False if there was no time to simulate every candidate that, by the rule of search(), may be
  /// the fastest.
  bool complete = true;
};

/// Finds the fastest mesh, microbatch, schedule, zero stage, recomputation and sequence parallelism
/// for the question's work (one model and global batch) on this number of ranks, within the
/// machine's memory. Options that `fixed` names and axes that `mesh` names are not changed. Times
/// are corrected like those of forecasts, see ModelFit::correction. Throws base::UsageError if no
/// candidate is possible or none fits.
///
/// QuickEstimate estimates time and memory of all candidates. In ascending order of estimated time,
/// candidates are simulated with their whole programs. Once `search_keeps` have been simulated, a
/// candidate is left out if its estimate exceeds the time of the fastest of them by more than an
/// allowance. The allowance is `search_slack`; once three candidates with the same schedule have
/// been simulated, it is the largest error of their estimates plus `search_margin`, but never more
/// than `search_slack`. The search ends at the first candidate that exceeds `search_slack`, or when
/// it has taken too long (see SearchResult::complete). The fastest candidate is found if no
/// estimate is too high by more than the allowance; the other results are the fastest of those
/// simulated by then. If the workload is not built from the stack of layers,
/// QuickEstimate does not know it, and all candidates are simulated.
///
/// The memory of a candidate is that of its whole programs, or of one stage's program if this stage
/// alone does not fit. An estimate of memory excludes a candidate only if it exceeds the capacity
/// by more than the share `search_memory_slack`.
[[nodiscard]] SearchResult search(const Question& question, int ranks);

/// The requests that a search chooses from.
struct SearchSpace {
  std::vector<workloads::Request> requests;  ///< complete requests of one model and global batch
  int impossible = 0;                        ///< number of combinations that the workload refuses
};

/// Returns all combinations of the following, as complete requests on `ranks` ranks with the
/// global batch that the question's `base` has on one rank:
/// - mesh: tp stays inside a node of `node_ranks` ranks. cp varies only if base.mesh.cp is
///   above 1. ep varies if the model has experts. Without experts ep is 1, so that dp has the only
///   groups over which states can be sharded. If zero may shard them, ep is also tried with
///   node_ranks / (tp x cp), so that each node has its own copy of the states; zero is then 3
///   unless zero or ep is given
/// - microbatch: the powers of two that divide the batch of each replica
/// - schedule (for pp > 1), v (chunks of layers per stage), zero stage and recomputation: all
///   that the workload has
/// - sequence_parallel: with and without, for tp > 1
/// Axes that `mesh` names and options that `fixed` names keep their values. Throws
/// base::UsageError if `base` itself is refused.
[[nodiscard]] SearchSpace search_space(const Question& question, int ranks);

/// Returns why a step is slower than the best one of a search: "0.31 s more tp transfer", "bubble
/// 12% against 4%", or "as fast, but needs 3.1 GiB more memory". It names the parts that take more
/// time, largest first, until most of the difference is explained. Both steps must have been
/// estimated with Detail::trace.
[[nodiscard]] std::string why_not(const StepEstimate& loser, const StepEstimate& first);

}  // namespace isoscale::analysis::predict
