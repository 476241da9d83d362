// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/text.hpp"
#include "preflight/rules.hpp"
#include "statistics/estimate.hpp"
#include "units/text.hpp"

/// These rules judge the sniff test: they compare the compute rate of each rank, and the bandwidth
/// of each pair of ranks, with others of the same kind.
namespace isoscale::preflight {
namespace {

using enum Verdict;

constexpr std::size_t fewest_alike = 4;  ///< fewer values have no clear majority

/// The median of the values of one kind, and the limit below which a value is slow.
struct Threshold {
  double median = 0, limit = 0;
};
/// The smallest margins below the median at which a value is slow, as a share of the median. GPUs
/// of one model vary by 8% on average (Sinha et al., "Not All GPUs Are Created Equal", SC 2022),
/// which is 4% to either side; CPUs share caches, memory and power with others, and links share
/// switches.
constexpr double least_gpu_gemm = 0.05, least_cpu_gemm = 0.10, least_bandwidth = 0.10;

/// Returns the limit for values of one kind. It is three standard deviations below their median;
/// the deviation is estimated from the median absolute deviation (times 1.4826 for normal noise).
/// The margin is at least the share `least` of the median, since nearly equal values have almost no
/// deviation.
Threshold threshold_of(const std::vector<double>& values, double least) {
  constexpr double deviations = 3, normal = 1.4826;
  const double middle = statistics::median(values).value_or(0);
  std::vector<double> apart;
  for (const double value : values) apart.push_back(std::abs(value - middle));
  const double margin =
      std::max(least * middle, deviations * normal * statistics::median(apart).value_or(0));
  return {.median = middle, .limit = middle - margin};
}

/// One measured value of a rank or a pair.
struct Measured {
  Place place;
  std::string kind;
  double value = 0;
};

/// Warns of each value that is slow, if there are at least four values of its kind.
void find_slow(Findings& findings, const JobFacts& job, const std::vector<Measured>& all,
               double least, std::string_view unit) {
  findings.otherwise.unknown = job.sniff_skipped.value_or(
      fmt::format("fewer than {} of a kind were measured", fewest_alike));
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

/// Looks up ranks, their hosts and GPUs, and names the kinds of values that are compared.
class Ranks {
 public:
  explicit Ranks(const JobFacts& job) : job_(job) {
    for (const CheckedNode& node : job.nodes) {
      nodes_[node.node] = &node;
      for (std::size_t i = 0; node.gpus && i < node.gpus->size(); ++i) {
        const GpuFacts& gpu = (*node.gpus)[i];
        gpus_[gpu.uuid] = {.node = &node, .gpu = &gpu, .index = static_cast<int>(i), .ranks = {}};
      }
      for (const CheckedPeers& peers : node.peers) {
        if (peers.link) links_[{node.node, peers.i, peers.j}] = *peers.link;
      }
    }
    for (const CheckedRank& rank : job.ranks) ranks_[rank.rank] = &rank;
  }

  [[nodiscard]] const CheckedRank* find(int rank) const {
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? nullptr : found->second;
  }
  [[nodiscard]] std::string host(const CheckedRank& rank) const {
    const auto found = nodes_.find(rank.node);
    return found == nodes_.end() ? fmt::format("node {}", rank.node) : found->second->host;
  }
  /// Returns "rank 12" or "rank 12, GPU 4 (0000:9d:00.0)".
  [[nodiscard]] std::string device(const CheckedRank& rank) const {
    const JobGpu* const gpu = gpu_of(rank);
    const std::string text = fmt::format("rank {}", rank.rank);
    return gpu == nullptr ? text : fmt::format("{}, {}", text, gpu->place().device);
  }
  /// Returns the kind of a rank's compute rate, named by its processor: "ranks on NVIDIA H100",
  /// "ranks on Xeon, 1 BLAS thread".
  [[nodiscard]] std::string kind(const CheckedRank& rank) const {
    if (job_.device == "cuda") {
      const JobGpu* const gpu = gpu_of(rank);
      return fmt::format("ranks on {}", gpu != nullptr && gpu->gpu->name ? *gpu->gpu->name
                                                                         : "GPUs of unknown model");
    }
    const auto node = nodes_.find(rank.node);
    const bool is_known = node != nodes_.end() && node->second->cpu_model;
    return fmt::format("ranks on {}, {}", is_known ? *node->second->cpu_model : "unknown CPUs",
                       base::counted(rank.blas_threads, "BLAS thread"));
  }
  /// Returns the kind of a pair's bandwidth, named by its link: "pairs inside nodes over NVLink",
  /// "pairs across nodes".
  [[nodiscard]] std::string kind(const CheckedRank& a, const CheckedRank& b) const {
    if (a.node != b.node) return "pairs across nodes";
    const JobGpu* const gpu_a = gpu_of(a);
    const JobGpu* const gpu_b = gpu_of(b);
    if (gpu_a == nullptr || gpu_b == nullptr) return "pairs inside nodes";
    const auto [i, j] = std::minmax(gpu_a->index, gpu_b->index);
    const auto link = links_.find({a.node, i, j});
    if (link == links_.end()) return "pairs inside nodes";
    return fmt::format("pairs inside nodes over {}",
                       link->second == "NVLink" ? "NVLink" : "PCIe (" + link->second + ")");
  }

 private:
  [[nodiscard]] const JobGpu* gpu_of(const CheckedRank& rank) const {
    const auto found = gpus_.find(rank.gpu.value_or(""));
    return !rank.gpu || found == gpus_.end() ? nullptr : &found->second;
  }

  const JobFacts& job_;
  std::unordered_map<int, const CheckedNode*> nodes_;
  std::unordered_map<int, const CheckedRank*> ranks_;
  std::unordered_map<std::string, JobGpu> gpus_;
  std::map<std::tuple<int, int, int>, std::string> links_;
};

void judge_gemm(Findings& findings, const JobFacts& job) {
  const Ranks ranks{job};
  std::vector<Measured> all;
  for (const CheckedRank& rank : job.ranks) {
    if (!rank.gemm_rate) {
      findings.add(not_known);
      continue;
    }
    all.push_back({.place = {.host = ranks.host(rank), .device = ranks.device(rank)},
                   .kind = ranks.kind(rank),
                   .value = *rank.gemm_rate});
  }
  find_slow(findings, job, all, job.device == "cuda" ? least_gpu_gemm : least_cpu_gemm, "FLOP/s");
}

void judge_bandwidth(Findings& findings, const JobFacts& job) {
  const Ranks ranks{job};
  std::map<std::pair<int, int>, std::optional<double>> pairs;
  for (const CheckedRank& rank : job.ranks) {
    for (const CheckedNeighbour& other : rank.neighbours) {
      auto& least =
          pairs.try_emplace(std::minmax(rank.rank, other.rank), other.bandwidth).first->second;
      // An absent bandwidth, which means that a rank got no answer, compares as the least, so the
      // pair has none either.
      least = std::min(least, other.bandwidth);
    }
  }
  std::vector<Measured> all;
  for (const auto& [pair, bandwidth] : pairs) {
    const CheckedRank* const a = ranks.find(pair.first);
    const CheckedRank* const b = ranks.find(pair.second);
    if (a == nullptr || b == nullptr) continue;
    const Place place{.host = a->node == b->node
                                  ? ranks.host(*a)
                                  : fmt::format("{} and {}", ranks.host(*a), ranks.host(*b)),
                      .device = fmt::format("{} and {}", ranks.device(*a), ranks.device(*b))};
    if (bandwidth) {
      all.push_back({.place = place, .kind = ranks.kind(*a, *b), .value = *bandwidth});
      continue;
    }
    findings.add(place, {.wrong = "they do not answer each other",
                         .cost = "a run would hang at the first message between them",
                         .fix = "check the ports and links between them, and at NCCL_DEBUG=INFO",
                         .verdict = stop});
  }
  find_slow(findings, job, all, least_bandwidth, "B/s");
}

constexpr auto sniff_table = std::to_array<Rule>(
    {{"gemm-rate", "each rank's GEMM rate against that of its like", judge_gemm, warning,
      "every step that all ranks share waits for it",
      "check its clocks, power, temperature and other processes; leave it out if it stays so",
      "every rank's GEMM is as fast as its like's"},
     {"neighbour-bandwidth", "bandwidth of pairs of ranks against that of their like",
      judge_bandwidth, warning, "collectives over this pair go at its pace",
      "check the links between them: ports, cables, NVLinks, PCIe",
      "every pair of neighbours is as fast as its like"}});

}  // namespace

std::span<const Rule> sniff_rules() { return sniff_table; }

}  // namespace isoscale::preflight
