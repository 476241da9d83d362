// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "analysis/curves.hpp"
#include "analysis/index/index.hpp"
#include "analysis/labels.hpp"

namespace isoscale::analysis {
namespace {

using results::PointStatus;

/// What is known without traces, so that an index says the same of a file however deep it was read.
std::vector<std::string> labels_of(const PointReport& point) {
  std::vector<std::string> labels = point.data->labels;
  if (has_label(point.labels, few_steps)) labels.emplace_back(few_steps);
  return labels;
}

void count(const results::PointData& point, IndexExperiment& into) {
  into.ok += point.status == PointStatus::ok ? 1 : 0;
  into.failed += point.status == PointStatus::failed ? 1 : 0;
  into.skipped += point.status == PointStatus::skipped ? 1 : 0;
}

/// Of points that were played; absent as well where there are none.
class Verdict {
 public:
  void add(const results::PointData& point) {
    if (point.status == PointStatus::skipped) return;
    any_ = true;
    wrong_ = wrong_ || point.verified == false;
    unknown_ = unknown_ || !point.verified;
  }
  [[nodiscard]] std::optional<bool> value() const {
    if (wrong_) return false;
    return any_ && !unknown_ ? std::optional{true} : std::nullopt;
  }

 private:
  bool any_ = false, wrong_ = false, unknown_ = false;
};

/// All that the points of an experiment have in common.
IndexExperiment common(std::span<const PointReport* const> points) {
  IndexExperiment result;
  Verdict verdict;
  std::set<std::string> labels;
  for (const PointReport* const point : points) {
    count(*point->data, result);
    verdict.add(*point->data);
    if (point->data->status == PointStatus::ok) {
      for (std::string& label : labels_of(*point)) labels.insert(std::move(label));
    }
  }
  result.verified = verdict.value();
  result.labels.assign(labels.begin(), labels.end());
  return result;
}

IndexExperiment of_curve(const Curve& curve, const std::string& device) {
  std::vector<const PointReport*> points;
  for (const PointReport& point : curve.points) points.push_back(&point);
  IndexExperiment result = common(points);
  result.experiment = experiment_of(curve);
  result.fingerprint = fingerprint(result.experiment, device);
  result.baseline = curve.baseline;
  for (const PointReport& point : curve.points) {  // ascending in ranks
    if (!point.throughput) continue;
    result.ranks = point.data->ranks;
    result.nodes = point.data->nodes;
    result.throughput = point.throughput;
    result.efficiency = point.efficiency;
    result.unit = point.data->throughput_unit;
    result.counts = is_scaling_result(point.data->labels);
  }
  return result;
}

/// Micro-benchmarks of one workload, model, dtype, scaling and placement.
IndexExperiment of_benches(std::span<const PointReport* const> points, const std::string& device) {
  IndexExperiment result = common(points);
  result.is_bench = true;
  result.experiment = experiment_of(*points.front()->data);
  result.fingerprint = fingerprint(result.experiment, device);
  for (const PointReport* const point : points) {
    const results::PointData& data = *point->data;
    if (data.status != PointStatus::ok || data.ranks < result.ranks.value_or(0)) continue;
    result.ranks = data.ranks;
    result.nodes = data.nodes;
  }
  return result;
}

auto family(const PointReport& point) {
  const results::PointData& data = *point.data;
  return std::tie(data.workload, data.model, data.dtype, data.scaling, data.placement);
}

std::string joined(const std::set<std::string>& kinds) {
  return fmt::format("{}", fmt::join(kinds, " + "));
}

void add_machine(const results::RunData& run, IndexRun& into) {
  std::set<std::string> hosts, cpus, gpus;
  std::set<double> cores;
  std::map<int, int> per_node;
  for (const results::RankFacts& facts : run.rank_facts) {
    hosts.insert(facts.host);
    ++per_node[facts.node];
    if (const auto cpu = facts.text.find("cpu_model"); cpu != facts.text.end()) {
      cpus.insert(cpu->second);
    }
    if (const auto gpu = facts.text.find("gpu_name"); gpu != facts.text.end()) {
      gpus.insert(gpu->second);
    }
    if (const auto number = facts.number.find("cores"); number != facts.number.end()) {
      cores.insert(number->second);
    }
  }
  into.hosts.assign(hosts.begin(), hosts.end());
  into.cpu = joined(cpus);
  into.gpu = joined(gpus);
  constexpr double most_cores = 1e6;  // a file may say anything
  if (cores.size() == 1 && *cores.begin() >= 1 && *cores.begin() <= most_cores) {
    into.cores = static_cast<int>(*cores.begin());
  }
  if (per_node.empty()) return;
  const auto [fewest, most] = std::ranges::minmax(per_node | std::views::values);
  into.fewest_per_node = fewest;
  into.most_per_node = most;
}

}  // namespace

IndexRun index_run(const RunReport& report) {
  const results::RunData& run = *report.data;
  IndexRun result{.id = run.id,
                  .file = report.file,
                  .created = run.created,
                  .ended = run.ended,
                  .isoscale_version = run.isoscale_version,
                  .git_hash = run.git_hash,
                  .device = run.device,
                  .complete = run.complete,
                  .ranks = run.ranks,
                  .nodes = run.nodes,
                  .points = run.points.size()};
  result.ok_points = static_cast<std::size_t>(
      std::ranges::count(run.points, PointStatus::ok, &results::PointData::status));
  add_machine(run, result);
  for (const Curve& curve : report.curves) {
    result.experiments.push_back(of_curve(curve, run.device));
  }
  // Points of one family need not follow each other.
  std::vector<std::vector<const PointReport*>> families;
  for (const PointReport& point : report.benches) {
    const auto known = std::ranges::find_if(
        families, [&](const auto& at) { return family(*at.front()) == family(point); });
    if (known == families.end()) {
      families.push_back({&point});
    } else {
      known->push_back(&point);
    }
  }
  for (const auto& points : families) result.experiments.push_back(of_benches(points, run.device));
  return result;
}

}  // namespace isoscale::analysis
