// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/findings/point_facts.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <map>

#include "analysis/rank_facts.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;
using results::PointData;
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

/// Over the GEMMs of a rank that has solo times.
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

/// As traced: mean over ranks of what the GEMMs of a step took.
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

std::string option_of(const PointData& point, const std::string& key) {
  return text_at(point.options, key);
}

std::optional<double> count_option(const PointData& point, const std::string& key) {
  return count_at(point.options, key);
}

std::optional<double> model_number(const PointData& point, const std::string& key) {
  return count_at(point.model_shape, key);
}

Breakdown communication_along(const BreakdownResult& breakdown, mesh::Axis axis) {
  Breakdown sum;
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
  // Without a breakdown nothing was checked to fit together.
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

}  // namespace isoscale::analysis
