// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "analysis/findings/rule.hpp"

/// What the rules of the table do; each is described there and in docs/findings.md.
namespace isoscale::analysis::judges {

using Said = std::optional<Judgement>;

Said communication_ratio(const PointSubject& subject, const Rule& rule);
Said missing_overlap(const PointSubject& subject, const Rule& rule);
Said small_buckets(const PointSubject& subject, const Rule& rule);
Said single_bucket(const PointSubject& subject, const Rule& rule);

Said small_gemms(const PointSubject& subject, const Rule& rule);
Said slower_gemms(const PointSubject& subject, const Rule& rule);
Said small_microbatch(const PointSubject& subject, const Rule& rule);
Said above_ceiling(const PointSubject& subject, const Rule& rule);
Said throttling(const PointSubject& subject, const Rule& rule);

Said few_microbatches(const PointSubject& subject, const Rule& rule);
Said bubble_beyond_schedule(const PointSubject& subject, const Rule& rule);

Said slow_rank(const PointSubject& subject, const Rule& rule);
Said slow_link(const PointSubject& subject, const Rule& rule);
Said imbalance(const PointSubject& subject, const Rule& rule);
Said noise(const PointSubject& subject, const Rule& rule);
Said wide_interval(const PointSubject& subject, const Rule& rule);
Said launch_spread(const PointSubject& subject, const Rule& rule);

Said slow_pair(const RunReport& run, const Rule& rule);
Said pcie_for_nvlink(const RunReport& run, const Rule& rule);
Said far_numa(const RunReport& run, const Rule& rule);

}  // namespace isoscale::analysis::judges
