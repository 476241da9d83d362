// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <stdexcept>

#include "results/records/point_facts.hpp"

namespace isoscale::analysis::advice {
namespace {

using program::OpKind;
using results::PointData;

constexpr std::array of_communication{Threshold{.what = "communication", .value = 0.20},
                                      Threshold{.what = "exposed", .value = 0.05}};
constexpr std::array of_overlap{Threshold{.what = "hidden", .value = 0.10},
                                Threshold{.what = "exposed", .value = 0.02}};
constexpr std::array of_small_buckets{
    Threshold{.what = "latency of a call", .value = 0.5},
    Threshold{.what = "bucket", .value = 0x1p20, .unit = Unit::bytes},
    Threshold{.what = "buckets", .value = 4, .unit = Unit::count},
    Threshold{.what = "exposed", .value = 0.02}};
constexpr std::array of_single_bucket{
    Threshold{.what = "bucket", .value = 0x1p22, .unit = Unit::bytes},
    Threshold{.what = "exposed", .value = 0.02}};
constexpr std::array of_gemms{Threshold{.what = "of the ceiling", .value = 0.5},
                              Threshold{.what = "ceiling at this size", .value = 0.8},
                              Threshold{.what = "a GEMM", .value = 1e9, .unit = Unit::flop},
                              Threshold{.what = "GEMMs", .value = 0.2}};
constexpr std::array of_lost_gemms{Threshold{.what = "lost", .value = 0.10}};
constexpr std::array of_microbatch{Threshold{.what = "MFU", .value = 0.30},
                                   Threshold{.what = "GEMMs", .value = 0.2}};
constexpr std::array of_microbatches{Threshold{.what = "bubble", .value = 0.10}};
constexpr std::array of_bubble{Threshold{.what = "excess", .value = 0.05}};
constexpr std::array of_waiting{Threshold{.what = "waiting", .value = 0.05}};
constexpr std::array of_ceiling{Threshold{.what = "MFU", .value = 1.0}};
constexpr std::array of_interval{Threshold{.what = "half width", .value = 0.05}};
constexpr std::array of_launches{Threshold{.what = "spread", .value = 0.05}};

constexpr std::string_view of_pop = "POP CoE metrics: efficiencies above 0.8 are acceptable";
constexpr std::string_view matmul_guide =
    "NVIDIA Matrix Multiplication Background guide; Calculon (SC23), GEMM efficiency by size";
constexpr std::string_view sc21 = "Megatron-LM, SC21 (arXiv 2104.04473)";
constexpr std::string_view ddp = "PyTorch Distributed, VLDB 2020 (arXiv 2006.15704)";

constexpr std::array all_rules{
    Rule{.name = "communication-ratio",
         .looks_at = "communication, hidden or not, as a share of the step",
         .thresholds = of_communication,
         .source = of_pop,
         .judge_point = judges::communication_ratio},
    Rule{.name = "missing-overlap",
         .looks_at = "collectives on a stream of their own that no computation hides",
         .thresholds = of_overlap,
         .source = "docs/breakdown.md; Megatron-LM issue 827, PyTorch issue 143890",
         .judge_point = judges::missing_overlap},
    Rule{.name = "small-buckets",
         .looks_at = "gradient buckets whose all-reduce is mostly latency",
         .thresholds = of_small_buckets,
         .source = "PyTorch Distributed, VLDB 2020 (arXiv 2006.15704); NVIDIA dgxc-benchmarking, "
                   "all_reduce on 8 H100: latency up to 1 MiB",
         .judge_point = judges::small_buckets},
    Rule{.name = "single-bucket",
         .looks_at = "one gradient bucket, which is ready only when backward has ended",
         .thresholds = of_single_bucket,
         .source = ddp,
         .instead_of = "missing-overlap",
         .judge_point = judges::single_bucket},
    Rule{.name = "small-gemms",
         .looks_at = "the rate of the GEMMs without communication against the measured ceiling",
         .thresholds = of_gemms,
         .source = matmul_guide,
         .judge_point = judges::small_gemms},
    Rule{.name = "slower-gemms",
         .looks_at = "what GEMMs take longer than ideal scaling from the baseline gives them",
         .thresholds = of_lost_gemms,
         .source = "POP CoE metrics, computation scalability; docs/breakdown.md",
         .judge_point = judges::slower_gemms},
    Rule{.name = "small-microbatch",
         .looks_at =
             "tokens of a microbatch: GEMMs with fewer rows than the GPU has FLOP per byte, "
             "or one sample at a low MFU",
         .thresholds = of_microbatch,
         .source = "Megatron-LM, SC21 (arXiv 2104.04473), table 1; NVIDIA Matrix Multiplication "
                   "Background guide",
         .instead_of = "small-gemms",
         .judge_point = judges::small_microbatch},
    Rule{.name = "throttling",
         .looks_at = "reasons that clocks were held down for, while the point ran",
         .thresholds = {},
         .source = "NVML clock event reasons, docs/device-state.md",
         .scope = Scope::faults,
         .concern = Concern::hardware,
         .judge_point = judges::throttling},
    Rule{.name = "few-microbatches",
         .looks_at = "the bubble of the pipeline's schedule, by its formula",
         .thresholds = of_microbatches,
         .source = sc21,
         .judge_point = judges::few_microbatches},
    Rule{.name = "bubble-beyond-schedule",
         .looks_at = "the measured bubble beyond what the schedule asks for among equal ranks",
         .thresholds = of_bubble,
         .source = "Megatron-LM, SC21 (arXiv 2104.04473), docs/breakdown.md",
         .judge_point = judges::bubble_beyond_schedule},
    Rule{.name = "slow-rank",
         .looks_at = "ranks whose own GEMMs take longer than those of like ranks",
         .thresholds = {},
         .source = "docs/breakdown.md",
         .scope = Scope::faults,
         .concern = Concern::hardware,
         .judge_point = judges::slow_rank},
    Rule{.name = "slow-link",
         .looks_at = "groups that take longer a byte than others that do the same",
         .thresholds = {},
         .source = "docs/breakdown.md",
         .scope = Scope::faults,
         .concern = Concern::hardware,
         .judge_point = judges::slow_link},
    Rule{.name = "imbalance",
         .looks_at = "waiting for ranks that are consistently late",
         .thresholds = of_waiting,
         .source = of_pop,
         .scope = Scope::faults,
         .judge_point = judges::imbalance},
    Rule{.name = "noise",
         .looks_at = "waiting for ranks that are occasionally late",
         .thresholds = of_waiting,
         .source = "Petrini, Kerbyson, Pakin, SC03; docs/breakdown.md",
         .scope = Scope::faults,
         .judge_point = judges::noise},
    Rule{.name = "above-ceiling",
         .looks_at = "an MFU above 100%: the run's own measurement of its ceiling is too low",
         .thresholds = of_ceiling,
         .source = "docs/micro-benchmarks.md",
         .concern = Concern::measurement,
         .judge_point = judges::above_ceiling},
    Rule{.name = "wide-interval",
         .looks_at = "the 95% interval of the step time",
         .thresholds = of_interval,
         .source = "Hoefler, Belli, SC15; docs/statistics.md",
         .concern = Concern::measurement,
         .judge_point = judges::wide_interval},
    Rule{.name = "launch-spread",
         .looks_at = "how far step times of several launches lie apart",
         .thresholds = of_launches,
         .source = "docs/launches.md: launches of one program differed by 3.9%",
         .concern = Concern::measurement,
         .judge_point = judges::launch_spread},
    Rule{.name = "slow-pair",
         .looks_at = "pairs of ranks that fall behind others on the same kind of link",
         .thresholds = {},
         .source = "docs/micro-benchmarks.md",
         .scope = Scope::run,
         .concern = Concern::hardware,
         .judge_run = judges::slow_pair},
    Rule{.name = "pcie-for-nvlink",
         .looks_at = "GPUs of a node that PCIe joins though they have NVLink",
         .thresholds = {},
         .source = "NVML, datasheets, preflight (docs/preflight.md)",
         .scope = Scope::run,
         .concern = Concern::hardware,
         .judge_run = judges::pcie_for_nvlink},
    Rule{.name = "far-numa",
         .looks_at = "ranks, GPUs and adapters on different NUMA nodes",
         .thresholds = {},
         .source = "preflight (docs/preflight.md)",
         .scope = Scope::run,
         .judge_run = judges::far_numa},
};

using Texts = std::map<std::string, std::string>;

std::string text_at(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string{} : found->second;
}

std::optional<double> count_at(const Texts& texts, const std::string& key) {
  const std::string text = text_at(texts, key);
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) return std::nullopt;
  return static_cast<double>(value);
}

struct GemmSums {
  double flop = 0, seconds = 0;
  std::size_t count = 0;
};

/// Returns the sums over a rank's GEMMs, with times measured in steps without communication.
GemmSums alone_of(const PointData& point, const results::SoloTimes& solo) {
  GemmSums sums;
  if (solo.rank < 0 || solo.rank >= point.ranks) return sums;
  const auto& ops = point.outline.of(solo.rank).ops;
  if (ops.size() != solo.op.size()) return sums;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::gemm) continue;
    sums.flop += ops[i].flop;
    sums.seconds += units::to_seconds(solo.op[i]).value();
    ++sums.count;
  }
  return sums;
}

/// Adds up the GEMMs of all ranks in one traced step; their seconds are means over the traced
/// steps.
GemmSums traced_gemms(const PointReport& report) {
  const PointData& point = *report.data;
  const auto seconds = report.op_time.find("gemm");
  if (seconds == report.op_time.end() || point.outline.outlines.empty()) return {};
  GemmSums sums{.seconds = seconds->second * point.ranks};
  for (int rank = 0; rank < point.ranks; ++rank) {
    for (const program::OutlineOp& op : point.outline.of(rank).ops) {
      if (op.kind != OpKind::gemm) continue;
      sums.flop += op.flop;
      ++sums.count;
    }
  }
  return sums;
}

}  // namespace

std::span<const Rule> rules() { return all_rules; }

double threshold_of(const Rule& rule, std::string_view what) {
  const auto found = std::ranges::find(rule.thresholds, what, &Threshold::what);
  if (found == rule.thresholds.end()) throw std::out_of_range("a rule without that threshold");
  return found->value;
}

std::string option_of(const PointData& point, const std::string& key) {
  return text_at(point.options, key);
}

std::optional<double> count_option(const PointData& point, const std::string& key) {
  return count_at(point.options, key);
}

std::optional<double> model_number(const PointData& point, const std::string& key) {
  return count_at(point.model_shape, key);
}

breakdown::Breakdown communication_along(const breakdown::BreakdownResult& breakdown,
                                         mesh::Axis axis) {
  breakdown::Breakdown sum;
  for (const auto& [axes, parts] : breakdown.by_axes) {
    if (axes.contains(axis)) sum += parts;
  }
  return sum;
}

std::optional<double> gemm_share(const PointReport& point) {
  const auto gemm = point.op_time.find("gemm");
  if (gemm == point.op_time.end() || !point.breakdown.mean) return std::nullopt;
  return gemm->second / point.breakdown.mean->step;
}

std::optional<GemmSpeed> gemm_speed(const PointReport& report) {
  // If there is no breakdown, the spans were not checked, so the times of GEMMs are not reliable.
  if (!report.breakdown.mean) return std::nullopt;
  GemmSums sums;
  for (const results::SoloTimes& solo : report.data->solo_times) {
    const GemmSums one = alone_of(*report.data, solo);
    sums.flop += one.flop;
    sums.seconds += one.seconds;
    sums.count += one.count;
  }
  const bool alone = sums.seconds > 0;
  if (!alone) sums = traced_gemms(report);
  if (!(sums.seconds > 0) || !(sums.flop > 0)) return std::nullopt;
  return GemmSpeed{.rate = sums.flop / sums.seconds,
                   .flop_of_one = sums.flop / static_cast<double>(sums.count),
                   .alone = alone};
}

std::string short_place(const results::RunData& run, const PointData& point, int rank) {
  const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
  const int world = world_rank(point, rank);
  if (facts == nullptr || facts->host.empty()) return fmt::format("rank {}", world);
  return fmt::format("rank {} ({})", world, facts->host);
}

}  // namespace isoscale::analysis::advice
