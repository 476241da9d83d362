// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "mesh/request.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis {

inline constexpr double search_slack = 0.06, search_margin = 0.01;
/// The share by which quick estimates of memory may be too large: of 210 random layouts of six
/// models the worst was 21% above its program (zb-h1 with a large vocabulary).
inline constexpr double search_memory_slack = 0.25;

struct SearchResult {
  std::vector<Candidate> best;  ///< at most `keep`, best first
  int looked_at = 0, too_large = 0, impossible = 0;
  int simulated = 0;  ///< by their whole programs, of those that fit
  /// True if all were simulated that could be among the best by the rule below, not only as many as
  /// there was time for.
  bool complete = true;
};

/// The fastest ways to run `base` (one model and global batch) on so many ranks: mesh, microbatch,
/// schedule, zero stage and recomputation, within the machine's memory. Options that `fixed` names
/// stay as base has them; so do axes of `mesh`. Throws base::UsageError when nothing is possible or
/// nothing fits.
///
/// All candidates get a lower bound and an estimate of memory from programs of a few layers; those
/// of small bounds are played with one op a pass; the best of these are simulated by their whole
/// programs, in that order, until the next one's estimate is more than `search_slack` above the
/// last of the best. Once three of a schedule have been simulated, no more is allowed for than the
/// most that their estimates were too high by, and `search_margin`: estimates that are off by less
/// drop nothing that is among the best. Memory is that of whole programs, or of one of them where
/// that alone is too large; only estimates that are `search_memory_slack` too large are believed.
[[nodiscard]] SearchResult search(const workloads::Workload& workload,
                                  const workloads::Request& base, const mesh::Request& mesh,
                                  int ranks, const simulate::Machine& machine, int node_ranks,
                                  const std::vector<std::string>& fixed, int keep = 10);

/// The requests that a search chooses from.
struct SearchSpace {
  std::vector<workloads::Request> requests;  ///< complete, of one model and global batch
  int impossible = 0;                        ///< combinations that the workload refuses
};

/// Every mesh of `ranks` ranks with tp inside a node of `node_ranks`, with every microbatch that is
/// a power of two and deals out evenly, every schedule, v, zero stage and recomputation that the
/// workload has. Axes that `mesh` names and options that `fixed` names stay; cp and ep vary only
/// where `base` or its experts use them. `base` is at the base mesh, and its global batch is kept.
/// Throws base::UsageError when `base` itself is refused.
[[nodiscard]] SearchSpace search_space(const workloads::Workload& workload,
                                       const workloads::Request& base, const mesh::Request& mesh,
                                       int ranks, int node_ranks,
                                       const std::vector<std::string>& fixed);

}  // namespace isoscale::analysis
