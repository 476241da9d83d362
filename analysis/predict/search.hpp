// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "mesh/request.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// The relative errors of quick estimates that a search allows for; search() describes their use.
inline constexpr double search_slack = 0.06, search_margin = 0.01;
/// The share by which quick estimates of memory may be too large: of 210 random layouts of six
/// models the worst estimate was 21% above the program's memory (zb-h1 with a large vocabulary).
inline constexpr double search_memory_slack = 0.25;

struct SearchResult {
  std::vector<Candidate> best;  ///< at most `keep`, best first
  int looked_at = 0;            ///< number of candidates, impossible ones included
  /// True if every candidate was simulated that may be among the best by the rule of search();
  /// false if there was no time for some.
  bool complete = true;
};

/// Finds the fastest mesh, microbatch, schedule, zero stage, recomputation and sequence parallelism
/// for `base` (one model and global batch) on this number of ranks, within the machine's memory.
/// Options that `fixed` names and axes of `mesh` are not changed. Throws base::UsageError if no
/// candidate is possible or none fits.
///
/// All candidates get estimates of time and memory by formulas, whose numbers come from programs of
/// a few layers. Those with the smallest estimates are simulated with their whole programs, in
/// order, until the next estimate exceeds the time of the slowest of the best by more than an
/// allowance. The allowance is `search_slack`; once three candidates of a schedule have been
/// simulated, it is the largest error of their estimates plus `search_margin`, but never more than
/// `search_slack`. If no estimate is too high by more than the allowance, no candidate that is
/// among the best is dropped. Memory comes from whole programs, or from one stage's program if this
/// alone is too large. An estimate of memory drops a candidate only if it exceeds the capacity by
/// `search_memory_slack`.
[[nodiscard]] SearchResult search(const workloads::Workload& workload,
                                  const workloads::Request& base, const mesh::Request& mesh,
                                  int ranks, const simulate::Machine& machine, int node_ranks,
                                  const std::vector<std::string>& fixed, int keep = 10);

/// The requests that a search chooses from.
struct SearchSpace {
  std::vector<workloads::Request> requests;  ///< complete requests of one model and global batch
  int impossible = 0;                        ///< combinations that the workload refuses
};

/// Returns every mesh of `ranks` ranks with tp inside a node of `node_ranks`, combined with every
/// microbatch that is a power of two and divides evenly, and with every schedule, v, zero stage and
/// recomputation that the workload has, and with and without sequence_parallel where tp > 1 and
/// `base` does not say it. Axes that `mesh` names and options that `fixed` names keep
/// their values; cp varies only if `base` uses it. ep varies with experts; without them a copy of
/// sharded states is shared by the ranks along dp or, with zero=3, by those of a node, along ep.
/// `base` is at the base mesh, and its global batch is kept. Throws base::UsageError if `base` itself is
/// refused.
[[nodiscard]] SearchSpace search_space(const workloads::Workload& workload,
                                       const workloads::Request& base, const mesh::Request& mesh,
                                       int ranks, int node_ranks,
                                       const std::vector<std::string>& fixed);

/// Returns why a step is slower than the first of a search: the parts that take more time, largest
/// first, until most of the difference is explained. "0.31 s more tp transfer", "bubble 12% against
/// 4%", or "as fast, but needs 3.1 GiB more memory". Both steps must have been traced.
[[nodiscard]] std::string why_not(const StepEstimate& loser, const StepEstimate& first);

}  // namespace isoscale::analysis::predict
