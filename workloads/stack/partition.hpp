// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

// The microbatches of a step are dealt to the replicas along dp.

/// The option `partition`.
struct Partition {
  enum class Kind : unsigned char { equal, proportional, skewed } kind = Kind::equal;
  double skew = 1;  ///< skewed: what the first replica gets, in units of what each other one gets
};
/// "equal", "proportional", "skewed:2.5"; nothing for any other text. A skew is 0.01 ... 100.
[[nodiscard]] std::optional<Partition> parse_partition(std::string_view text);

/// Microbatches by replica.
struct Deal {
  std::vector<int> microbatches;
  [[nodiscard]] int total() const;
  /// Microbatches of the replicas before this one: samples are numbered replica by replica.
  [[nodiscard]] int first(int replica) const;
  /// The first of the replicas that play the same program as this one: consecutive ones that get
  /// as many microbatches, unless their samples cannot be numbered from 0 on in equal steps.
  [[nodiscard]] int alike(int replica) const;
};

/// `total` units dealt by weight: the whole parts of the exact shares, then one each to the largest
/// remainders (of equal ones the first), then from the largest shares to those below `least`.
/// `total` is at least `least` x replicas.
[[nodiscard]] std::vector<int> deal_by_weight(int total, const std::vector<double>& weights,
                                              int least);

/// What `partition` makes of microbatches x dp, in turns of pp where the schedule takes them so.
/// proportional without measured speeds is equal.
[[nodiscard]] Deal deal_of(const Request& request);
/// By dp coordinate, Deal::alike.
[[nodiscard]] std::vector<int> alike_replicas(const Request& request);

/// Throws base::UsageError, with the numbers and the nearest that works, when `partition` has no
/// meaning or nothing to deal.
void require_partition(const Request& scaled);

}  // namespace isoscale::workloads::stack
