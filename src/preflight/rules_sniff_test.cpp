// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "preflight/rules.hpp"
#include "statistics/estimate.hpp"
#include "units/quantity_text.hpp"

/// These rules judge the sniff test, a short measurement before the run. They compare the compute
/// rate of each rank with that of similar ranks, and the bandwidth of each pair of ranks with that
/// of similar pairs.
namespace isoscale::preflight {
namespace {

using enum Verdict;

constexpr std::size_t fewest_alike = 4;  ///< with fewer values it is not clear which are normal

/// The median of the values that are compared with each other, and the limit below which a value
/// counts as slow.
struct Threshold {
  double median = 0, limit = 0;
};
/// A value counts as slow only if it is below the median by at least this share of the median. GPUs
/// of one model vary by 8% on average (Sinha et al., "Not All GPUs Are Created Equal", SC 2022),
/// that is 4% to either side. CPUs share caches, memory and power with others, and links share
/// switches, so they may vary more.
constexpr double least_gpu_gemm = 0.05, least_cpu_gemm = 0.10, least_bandwidth = 0.10;

/// Returns the median of `values`, and the limit below which a value is slow: three standard
/// deviations below the median. The deviation is estimated from the median absolute deviation
/// (times 1.4826 for normal noise). Nearly equal values have almost no deviation, so the limit is
/// always below the median by at least the share `least` of it.
Threshold threshold_of(const std::vector<double>& values, double least) {
  constexpr double deviations = 3, normal = 1.4826;
  const double middle = statistics::median(values).value_or(0);
  std::vector<double> apart;
  for (const double value : values) apart.push_back(std::abs(value - middle));
  const double margin =
      std::max(least * middle, deviations * normal * statistics::median(apart).value_or(0));
  return {.median = middle, .limit = middle - margin};
}

/// A measured value of a rank or of a pair of ranks. Values of the same kind are compared with each
/// other.
struct Measured {
  Place place;
  std::string kind;
  double value = 0;
};

/// Warns of each value that is slow (see Threshold), if there are at least four values of its kind.
void find_slow(Findings& findings, const JobFacts& job, const std::vector<Measured>& all,
               double least, std::string_view unit) {
  findings.otherwise.unknown = job.sniff_skipped.value_or(
      fmt::format("fewer than {} similar ranks or pairs were measured", fewest_alike));
  std::map<std::string, std::vector<double>> values;
  for (const Measured& one : all) values[one.kind].push_back(one.value);
  std::map<std::string, Threshold> thresholds;
  for (const auto& [kind, of_kind] : values) {
    if (of_kind.size() >= fewest_alike) thresholds[kind] = threshold_of(of_kind, least);
  }
  for (const Measured& one : all) {
    const auto found = thresholds.find(one.kind);
    if (found == thresholds.end()) {
      findings.add(not_known);
      continue;
    }
    const auto& [median, limit] = found->second;
    if (one.value >= limit) {
      findings.add(nothing_wrong);
      continue;
    }
    findings.add(
        one.place,
        wrong("{}, {} below the median {} of {} {}", units::format_prefixed(one.value, unit),
              units::format_percent(1 - one.value / median), units::format_prefixed(median, unit),
              values[one.kind].size(), one.kind));
  }
}

/// A rank, its host, and its GPU if the facts of the node have it.
struct RankAt {
  const CheckedRank* rank = nullptr;
  std::string host;
  const CheckedNode* node = nullptr;  ///< null if no facts of it are known
  std::optional<JobGpu> gpu{};

  /// Returns "rank 12" or "rank 12, GPU 4 (0000:9d:00.0)".
  [[nodiscard]] std::string device() const {
    const std::string text = fmt::format("rank {}", rank->rank);
    return gpu ? fmt::format("{}, {}", text, gpu->place().device) : text;
  }
};

/// Returns all ranks of the job, by rank number.
std::map<int, RankAt> ranks_at(const JobFacts& job) {
  std::map<int, RankAt> ranks;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    for (const CheckedRank* const rank : node.ranks) {
      ranks[rank->rank] = {.rank = rank, .host = node.host(), .node = node.facts};
    }
  }
  for (const JobGpu& one : job_gpus(job)) {
    if (one.gpu->uuid.empty()) continue;  // nothing is known about this GPU
    for (const CheckedRank* const rank : one.ranks) ranks[rank->rank].gpu = one;
  }
  return ranks;
}

/// Returns the kind of ranks among which a rank's compute rate is compared. It names the processor:
/// "ranks on NVIDIA H100", "ranks on Xeon, 1 BLAS thread".
std::string kind_of(const RankAt& at, const JobFacts& job) {
  if (job.device == "cuda") {
    return fmt::format("ranks on {}",
                       at.gpu && at.gpu->gpu->name ? *at.gpu->gpu->name : "GPUs of unknown model");
  }
  const bool is_known = at.node != nullptr && at.node->cpu_model;
  return fmt::format("ranks on {}, {}", is_known ? *at.node->cpu_model : "unknown CPUs",
                     base::counted(at.rank->blas_threads, "BLAS thread"));
}

/// Returns the kind of pairs with which a pair's bandwidth is compared. It names the link: "pairs
/// inside nodes over NVLink", "pairs across nodes".
std::string kind_of(const RankAt& a, const RankAt& b) {
  if (a.rank->node != b.rank->node) return "pairs across nodes";
  if (!a.gpu || !b.gpu) return "pairs inside nodes";
  const auto [i, j] = std::minmax(a.gpu->index, b.gpu->index);
  for (const CheckedPeers& peers : a.node->peers) {
    if (peers.i != i || peers.j != j || !peers.link) continue;
    return fmt::format("pairs inside nodes over {}",
                       peers.link == "NVLink" ? "NVLink" : "PCIe (" + *peers.link + ")");
  }
  return "pairs inside nodes";
}

void judge_gemm(Findings& findings, const JobFacts& job) {
  std::vector<Measured> all;
  for (const auto& [number, at] : ranks_at(job)) {
    if (!at.rank->gemm_rate) {
      findings.add(not_known);
      continue;
    }
    all.push_back({.place = {.host = at.host, .device = at.device()},
                   .kind = kind_of(at, job),
                   .value = *at.rank->gemm_rate});
  }
  find_slow(findings, job, all, job.device == "cuda" ? least_gpu_gemm : least_cpu_gemm, "FLOP/s");
}

void judge_bandwidth(Findings& findings, const JobFacts& job) {
  const std::map<int, RankAt> ranks = ranks_at(job);
  std::map<std::pair<int, int>, std::optional<double>> pairs;
  for (const auto& [number, at] : ranks) {
    for (const CheckedNeighbour& other : at.rank->neighbours) {
      if (!ranks.contains(other.rank)) continue;
      auto& least =
          pairs.try_emplace(std::minmax(number, other.rank), other.bandwidth).first->second;
      // A bandwidth is absent if a rank got no answer. std::min takes an absent value as less than
      // any number. So the pair's bandwidth is absent if either of its two ranks got no answer.
      least = std::min(least, other.bandwidth);
    }
  }
  std::vector<Measured> all;
  for (const auto& [pair, bandwidth] : pairs) {
    const RankAt &a = ranks.at(pair.first), &b = ranks.at(pair.second);
    const bool is_one_node = a.rank->node == b.rank->node;
    const Place place{.host = is_one_node ? a.host : fmt::format("{} and {}", a.host, b.host),
                      .device = fmt::format("{} and {}", a.device(), b.device())};
    if (bandwidth) {
      all.push_back({.place = place, .kind = kind_of(a, b), .value = *bandwidth});
      continue;
    }
    findings.add(place, {.wrong = "they do not answer each other",
                         .cost = "a run would hang at the first message between them",
                         .fix = "set NCCL_DEBUG=INFO, and check ports and links between them",
                         .verdict = stop});
  }
  find_slow(findings, job, all, least_bandwidth, "B/s");
}

constexpr auto sniff_table = std::to_array<Rule>(
    {{"gemm-rate", judge_gemm, warning, "steps that use all ranks wait for this rank",
      "check its clocks, power, temperature and other processes; exclude it if it stays slow",
      "every rank's GEMM is as fast as those of similar ranks"},
     {"neighbour-bandwidth", judge_bandwidth, warning,
      "collectives that include this pair run at its speed",
      "check the links between them: ports, cables, NVLinks, PCIe",
      "every pair of neighbours is as fast as similar pairs"}});

}  // namespace

std::span<const Rule> sniff_rules() { return sniff_table; }

}  // namespace isoscale::preflight
