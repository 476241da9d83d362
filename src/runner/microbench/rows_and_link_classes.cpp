// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/microbench/rows_and_link_classes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "machine/nvml_library.hpp"
#include "mesh/mesh.hpp"
#include "statistics/estimate.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner::microbench {
namespace {

using results::PointStatus;
using results::RankFacts;
using results::RowData;

/// Returns the ranks to which a row refers. A row that lists no ranks refers to all ranks of the
/// point, whose number is `all`.
std::vector<std::size_t> ranks_of(const workloads::RowSpec& spec, std::size_t all) {
  std::vector<std::size_t> ranks{spec.ranks.begin(), spec.ranks.end()};
  if (!ranks.empty()) return ranks;
  for (std::size_t rank = 0; rank < all; ++rank) ranks.push_back(rank);
  return ranks;
}

std::vector<double> times_of(const workloads::RowSpec& spec, const RankReport& report) {
  if (!spec.stream) return report.plays;
  std::vector<double> times;
  for (const auto& [stream, seconds] : report.stream_times) {
    if (stream == *spec.stream) times.push_back(seconds);
  }
  return times;
}

void note_gpus(std::span<const std::size_t> ranks, std::span<const RankReport> reports,
               RowData& row) {
  std::vector<double> clocks;
  std::optional<std::int64_t> reasons;
  for (const std::size_t rank : ranks) {
    const RankReport& of_rank = reports[rank];
    if (of_rank.sm_clock) clocks.push_back(*of_rank.sm_clock);
    if (of_rank.throttle_reasons) reasons = reasons.value_or(0) | *of_rank.throttle_reasons;
  }
  if (reasons) row.number["throttle_reasons"] = static_cast<double>(*reasons);
  if (clocks.empty()) return;
  row.number["sm_clock_min"] = *std::ranges::min_element(clocks);
  row.number["sm_clock"] = *statistics::median(clocks);
}

std::set<std::string> peers_of(const RankFacts& facts) {
  const std::string list = text_of(facts, "gpu_nvlink_peers");
  if (list.empty()) return {};
  const auto peers = base::split(list, ',');
  return {peers.begin(), peers.end()};
}

/// True if NVLinks lead from one of the two GPUs to the other, or from both to the same switch.
bool have_nvlink(const RankFacts& a, const RankFacts& b) {
  const std::set<std::string> peers_a = peers_of(a), peers_b = peers_of(b);
  if (peers_a.contains(text_of(b, "gpu_pci")) || peers_b.contains(text_of(a, "gpu_pci")))
    return true;
  return std::ranges::any_of(peers_a, [&](const auto& peer) { return peers_b.contains(peer); });
}

bool is_alike(const RankFacts& a, const RankFacts& b, const char* key) {
  const std::string value = text_of(a, key);
  return !value.empty() && value == text_of(b, key);
}

/// True if the NVLinks of the rank's GPU are known: NVML gave their number and, unless that is
/// zero, also where they lead.
bool knows_links(const RankFacts& facts) {
  return facts.number.contains("gpu_nvlinks") &&
         (facts.number.at("gpu_nvlinks") == 0 || facts.text.contains("gpu_nvlink_peers"));
}

/// Returns the groups of ranks that communicate in a row, as ranks of the point.
std::vector<std::vector<int>> groups_of(const RowData& row, const results::PointData& point) {
  if (!row.ranks.empty()) return {row.ranks};
  mesh::AxisSet axes = mesh::every_axis;
  for (const mesh::Axis axis : mesh::all_axes) {
    if (mesh::name(axis) == text_of(row, "axis")) axes = axis;
  }
  std::map<int, std::vector<int>> groups;
  for (int rank = 0; rank < point.mesh.size(); ++rank) {
    groups[mesh::group_colour(point.mesh, rank, axes)].push_back(rank);
  }
  std::vector<std::vector<int>> result;
  for (auto& [colour, ranks] : groups) result.push_back(std::move(ranks));
  return result;
}

}  // namespace

void note_gpu(std::span<const results::DeviceSeries> sampled, RankReport& report) {
  for (const results::DeviceSeries& series : sampled) {
    if (series.quantity == "sm_clock") report.sm_clock = statistics::median(series.value);
    if (series.quantity != "throttle_reasons") continue;
    for (const double bits : series.value) {
      const auto reasons = static_cast<std::uint64_t>(bits) & ~machine::nvml::idle_reason;
      report.throttle_reasons =
          report.throttle_reasons.value_or(0) | static_cast<std::int64_t>(reasons);
    }
  }
}

RowData row_of(const workloads::RowSpec& spec, PointStatus status, std::string reason) {
  return {.text = spec.text,
          .number = spec.number,
          .ranks = spec.ranks,
          .status = status,
          .reason = std::move(reason)};
}

RowData row_of(const workloads::RowSpec& spec, const workloads::Case& one, const CaseRecord& record,
               std::span<const RankReport> reports) {
  RowData row = row_of(spec, PointStatus::ok);
  row.calls = static_cast<std::int64_t>(spec.stream ? one.calls : one.calls * record.times);
  if (!spec.stream) row.call_times = record.call_times;
  row.number["first_call"] = record.first_call;
  if (record.estimate) {
    row.number["estimate"] = record.estimate->value() / static_cast<double>(one.calls);
  }
  if (row.number.contains("flop")) row.text["arithmetic"] = record.arithmetic;
  const auto put_count = [&](const char* key, std::uint64_t count) {
    if (count > 0 && !spec.stream) row.number[key] = static_cast<double>(count);
  };
  put_count("repeated_plays", record.repeated_plays);
  put_count("late_plays", record.late_plays);
  const std::vector<std::size_t> ranks = ranks_of(spec, reports.size());
  std::vector<std::vector<double>> of_rank;
  std::size_t plays = SIZE_MAX;
  for (const std::size_t rank : ranks) {
    plays = std::min(plays, of_rank.emplace_back(times_of(spec, reports[rank])).size());
  }
  for (std::size_t play = 0; play < plays; ++play) {
    std::vector<double>& times = row.times.emplace_back();
    for (const std::vector<double>& played : of_rank) times.push_back(played[play]);
  }
  note_gpus(ranks, reports, row);
  note_wrong(spec, reports, row);
  return row;
}

void note_wrong(const workloads::RowSpec& spec, std::span<const RankReport> reports, RowData& row) {
  for (const std::size_t rank : ranks_of(spec, reports.size())) {
    if (const auto wrong = reports[rank].wrong) {
      row.wrong = row.wrong.value_or(0) + *wrong;
    }
  }
  if (row.wrong.value_or(0) == 0) return;
  row.status = PointStatus::failed;
  row.reason = fmt::format("{} wrong elements", *row.wrong);
}

std::string title_of(const workloads::RowSpec& row) {
  std::string text;
  for (const char* const key : {"op", "kind", "part", "dtype"}) {
    const auto found = row.text.find(key);
    if (found != row.text.end())
      text += fmt::format("{}{}", text.empty() ? "" : " ", found->second);
  }
  const auto bytes = row.number.find("bytes");
  if (bytes != row.number.end() && bytes->second > 0) {
    text += " " + units::format(units::Bytes{static_cast<std::uint64_t>(bytes->second)});
  }
  return text;
}

LinkClasses::LinkClasses(std::span<const RankFacts> facts)
    : facts_(facts), rail_(facts.size(), -1) {
  // For each node, the GPUs that its ranks use. The rail of a rank is the position of its GPU in
  // this list: the k-th rank of a node need not use the k-th GPU.
  std::map<int, std::set<std::string>> gpus_of_node;
  for (const RankFacts& rank : facts) {
    if (const std::string gpu = text_of(rank, "gpu_pci"); !gpu.empty()) {
      gpus_of_node[rank.node].insert(gpu);
    }
  }
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const std::string gpu = text_of(facts[rank], "gpu_pci");
    if (gpu.empty()) continue;
    const std::set<std::string>& gpus = gpus_of_node[facts[rank].node];
    rail_[rank] = static_cast<int>(std::distance(gpus.begin(), gpus.find(gpu)));
  }
}

std::string LinkClasses::of_pair(int a, int b) const {
  const RankFacts &one = facts(a), &other = facts(b);
  if (one.node != other.node) {
    if (is_alike(one, other, "gpu_fabric")) return "other node, NVLink domain";
    const int rail = rail_[static_cast<std::size_t>(a)];
    const bool same = rail >= 0 && rail == rail_[static_cast<std::size_t>(b)];
    return same ? "other node, same rail" : "other node";
  }
  const bool is_one_gpu = is_alike(one, other, "gpu_uuid");
  if (is_one_gpu || !knows_links(one) || !knows_links(other)) return "same node";
  return have_nvlink(one, other) ? "same node, NVLink" : "same node, PCIe";
}

std::string LinkClasses::of_group(std::span<const int> ranks) const {
  const bool is_one = std::ranges::all_of(
      ranks, [&](int rank) { return facts(rank).node == facts(ranks.front()).node; });
  return is_one ? "one node" : "several nodes";
}

void classify_rows(const LinkClasses& classes, results::PointData& point) {
  const auto world = [&](int rank) { return point.world_rank.at(static_cast<std::size_t>(rank)); };
  for (RowData& row : point.rows) {
    if (row.number.contains("src") && row.number.contains("dst")) {
      row.text["class"] = classes.of_pair(world(static_cast<int>(row.number.at("src"))),
                                          world(static_cast<int>(row.number.at("dst"))));
      continue;
    }
    const bool has_groups = row.number.contains("members") || text_of(row, "op") == "p2p";
    if (!has_groups) continue;
    std::string widest;
    for (std::vector<int>& group : groups_of(row, point)) {
      for (int& rank : group) rank = world(rank);
      const std::string found = classes.of_group(group);
      if (widest.empty() || found == "several nodes") widest = found;
    }
    row.text["class"] = widest;
  }
}

std::string rank_name(int world_rank, const std::string& host) {
  return fmt::format("rank {} ({})", world_rank, host);
}

std::optional<units::BytesPerSecond> median_bandwidth(const RowData& row) {
  std::vector<double> slowest;
  for (const std::vector<double>& play : row.times) {
    if (!play.empty()) slowest.push_back(*std::ranges::max_element(play));
  }
  if (slowest.empty() || !row.number.contains("bytes")) return std::nullopt;
  const double median = statistics::median(slowest).value_or(0);
  if (median <= 0) return std::nullopt;
  return units::BytesPerSecond{row.number.at("bytes") * static_cast<double>(row.calls) / median};
}

void judge_bandwidth(std::vector<RowData>& rows, units::BytesPerSecond least,
                     const std::vector<std::string>& names) {
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
  double slowest = 0;  // bytes per second of the row whose reason is returned; 0 if the row has no
                       // times, such as a row in which a rank did not answer
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

}  // namespace isoscale::runner::microbench
