// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::runner {

using results::PointStatus;
using results::RowData;

std::string rank_name(int world_rank, const std::string& host) {
  return fmt::format("rank {} ({})", world_rank, host);
}

std::string silence(const std::string& low, const std::string& high, units::Seconds timeout) {
  return fmt::format("no answer within {} between {} and {}", units::format(timeout), low, high);
}

std::optional<units::BytesPerSecond> median_bandwidth(const RowData& row) {
  std::vector<double> slowest;
  for (const std::vector<double>& play : row.times) {
    if (!play.empty()) slowest.push_back(*std::ranges::max_element(play));
  }
  if (slowest.empty() || !row.number.contains("bytes")) return std::nullopt;
  std::ranges::sort(slowest);
  const std::size_t middle = slowest.size() / 2;
  const double median =
      slowest.size() % 2 == 1 ? slowest[middle] : (slowest[middle - 1] + slowest[middle]) / 2;
  if (median <= 0) return std::nullopt;
  return units::BytesPerSecond{row.number.at("bytes") * static_cast<double>(row.calls) / median};
}

void judge_bandwidth(std::vector<RowData>& rows, units::BytesPerSecond least,
                     const RankNames& names) {
  for (RowData& row : rows) {
    if (row.status != PointStatus::ok || text_of(row, "op") != "p2p" ||
        text_of(row, "kind") != "bandwidth")
      continue;
    const auto bandwidth = median_bandwidth(row);
    if (!bandwidth || *bandwidth >= least) continue;
    row.status = PointStatus::failed;
    row.reason =
        fmt::format("{} from {} to {}, where {} is expected", units::format(*bandwidth),
                    names.at(static_cast<std::size_t>(row.number.at("src"))),
                    names.at(static_cast<std::size_t>(row.number.at("dst"))), units::format(least));
  }
}

std::string reason_of_failed(std::span<const RowData> rows) {
  std::string reason;
  std::size_t more = 0;
  double slowest = 0;  // of those that are too slow, the slowest is named; silence goes before it
  for (const RowData& row : rows) {
    if (row.status != PointStatus::failed) continue;
    const auto bandwidth = median_bandwidth(row);
    const double now = bandwidth ? bandwidth->value() : 0;
    if (!reason.empty()) ++more;
    if (reason.empty() || (now < slowest && !row.reason.empty())) {
      reason = row.reason;
      slowest = now;
    }
  }
  if (more == 0) return reason;
  return fmt::format("{}; {} failed", reason, base::counted(more, "more row"));
}

}  // namespace isoscale::runner
