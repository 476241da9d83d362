// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/run_config.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// The predicted time of one out-of-place collective of the workload `collectives`.
struct CollectiveTime {
  int ranks = 0, nodes = 0;  ///< of the whole mesh
  int members = 0;           ///< ranks of the group
  /// "all": all groups of the axis at once; "one": one group alone.
  std::string groups{};
  std::string op{}, dtype{}, reduction{};  ///< reduction is "" if the op reduces nothing
  int root = -1;                           ///< index of the root in the group; -1 = no root
  double bytes = 0, count = 0;             ///< size of the message as nccl-tests counts it
  double seconds = 0;                      ///< time of the slowest group
  std::optional<double> algbw{}, busbw{};  ///< bytes/s; absent for barriers, and if the time is 0
  /// `algorithm` is "" if the library has no choice; `protocol` also if network switches reduce.
  std::string algorithm{}, protocol{};
};

/// Predicted times of collectives by message size, for each rank count and operation.
struct CollectiveTimes {
  std::string source{}, machine{};
  std::string what_if{};  ///< changes of the sheet, "link.inter=2x,latency=0.5x"; "" = none
  int node_ranks = 1;
  std::vector<CollectiveTime> rows{};
};

/// Predicts the collectives of the workload `collectives` on the network of `sheet`, a machine
/// known by its data sheet. Settings that name a part of the machine change it. Throws
/// base::UsageError for options of `predict` or of the workload that do not apply, and for rank
/// counts that the given axes of the mesh do not divide.
[[nodiscard]] CollectiveTimes collective_times(const settings::PredictCommand& command,
                                               simulate::Machine sheet);

/// Returns tables with the columns of nccl-tests, one table for each rank count and operation.
[[nodiscard]] std::string render_text(const CollectiveTimes& times);
/// Returns the times as JSON; docs/predicting.md describes the keys.
[[nodiscard]] std::string render_json(const CollectiveTimes& times);
[[nodiscard]] std::string render_csv(const CollectiveTimes& times);

}  // namespace isoscale::analysis::predict
