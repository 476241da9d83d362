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

namespace isoscale::analysis::predict {

inline constexpr double search_slack = 0.06, search_margin = 0.01;
/// The share by which quick estimates of memory may be too large: of 210 random layouts of six
/// models the worst estimate was 21% above the program's memory (zb-h1 with a large vocabulary).
inline constexpr double search_memory_slack = 0.25;

struct SearchResult {
  std::vector<Candidate> best;  ///< at most `keep`, best first
  int looked_at = 0, too_large = 0, impossible = 0;
  int simulated = 0;  ///< number that fit and whose whole programs were simulated
  /// True if all entries were simulated that may be among the best by the rule of search(); false
  /// if there was no time for some.
  bool complete = true;
};

/// Finds the fastest ways to run `base` (one model and global batch) on this number of ranks: mesh,
/// microbatch, schedule, zero stage and recomputation, within the machine's memory. Options that
/// `fixed` names stay as base has them, and so do axes of `mesh`. Throws base::UsageError when
/// nothing is possible or nothing fits.
///
/// All candidates get a lower bound and an estimate of memory from programs of a few layers. Those
/// with small bounds are played with one op per pass. The best of these are simulated by their
/// whole programs, in order, until the next one's estimate is more than an allowance above the last
/// of the best. The allowance is `search_slack`; once three candidates of a schedule have been
/// simulated, it is the largest excess of their estimates plus `search_margin`. If no estimate is
/// too high by more than this, no candidate that is among the best is dropped. Memory is that of
/// whole programs, or of one of them where that alone is too large; a candidate is dropped by its
/// estimate only if this exceeds the capacity by `search_memory_slack`.
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
/// microbatch that is a power of two and divides evenly, and every schedule, v, zero stage and
/// recomputation that the workload has. Axes that `mesh` names and options that `fixed` names stay;
/// cp and ep vary only where `base` or its experts use them. `base` is at the base mesh, and its
/// global batch is kept. Throws base::UsageError when `base` itself is refused.
[[nodiscard]] SearchSpace search_space(const workloads::Workload& workload,
                                       const workloads::Request& base, const mesh::Request& mesh,
                                       int ranks, int node_ranks,
                                       const std::vector<std::string>& fixed);

}  // namespace isoscale::analysis::predict
