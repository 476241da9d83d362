// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "runner/watch/state.hpp"

/// Who holds up a job that stands still.
namespace isoscale::runner {

struct Culprit {
  int rank = 0;
  std::string what{};  ///< "never answered", "failed: ...", "is in gemm, forward, layer 3"
};

struct Hang {
  std::vector<int> silent{};        ///< ranks that never answered, ascending
  std::vector<Culprit> culprits{};  ///< by rank; empty where nobody can be told
  /// The first call in which some have arrived and others have not; "" when there is none.
  std::string first_op{};
  std::vector<int> waiting{}, absent{};  ///< ranks, at that call

  /// One sentence: "rank 2 did not arrive at all_reduce ... (never answered)".
  [[nodiscard]] std::string sentence() const;
};

/// From what the ranks that answered say of themselves, of a launch of `ranks`. Of a chain of ranks
/// that wait for each other only its end is a culprit.
[[nodiscard]] Hang find_hang(const std::vector<RankState>& states, int ranks);

}  // namespace isoscale::runner
