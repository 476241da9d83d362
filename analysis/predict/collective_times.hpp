// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "settings/run_config.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// The predicted time of one collective of the workload `collectives`, out of place.
struct CollectiveTime {
  int ranks = 0, nodes = 0;                ///< of the point
  int members = 0;                         ///< ranks of the group
  std::string groups{};                    ///< "all" along the axis at once, or "one" alone
  std::string op{}, dtype{}, reduction{};  ///< reduction: "" where nothing is reduced
  int root = -1;                           ///< -1 where there is none
  double bytes = 0, count = 0;             ///< as nccl-tests count them
  double seconds = 0;                      ///< of the slowest group
  std::optional<double> algbw{}, busbw{};  ///< bytes/s; absent for barriers
  std::string algorithm{}, protocol{};     ///< "" where a library has no choice
};

/// The times of collectives by size, for each rank count and operation.
struct CollectiveTimes {
  std::string source{}, machine{};
  int node_ranks = 1;
  std::vector<CollectiveTime> rows{};
};

/// Predicts the cases of the workload `collectives` on the network of a data sheet. Settings that
/// name a part of the machine change it. Throws base::UsageError for options of `predict` or of the
/// workload that do not apply, and for rank counts that the mesh does not divide.
[[nodiscard]] CollectiveTimes collective_times(const settings::PredictCommand& command,
                                               simulate::Machine sheet);

/// Returns tables in the columns of nccl-tests, one for each rank count and operation.
[[nodiscard]] std::string render_text(const CollectiveTimes& times);
/// Returns the times as JSON; docs/predicting.md describes the keys.
[[nodiscard]] std::string render_json(const CollectiveTimes& times);
[[nodiscard]] std::string render_csv(const CollectiveTimes& times);

}  // namespace isoscale::analysis::predict
