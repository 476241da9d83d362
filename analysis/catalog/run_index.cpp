// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/catalog/run_index.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/group_by.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::catalog {
namespace {

using results::PointStatus;

/// Returns the labels that do not depend on the traces of steps. An entry is made from a whole run
/// or from its summary (results/reader/appended_summary.hpp), which has no traces; with these
/// labels alone both give the same entry.
std::set<std::string> labels_of(const PointReport& point) {
  std::set<std::string> labels{point.data->labels.begin(), point.data->labels.end()};
  if (results::has_label(point.labels, results::few_steps)) labels.emplace(results::few_steps);
  return labels;
}

/// Returns false if the result of some point is wrong, true if all points that were run are
/// verified; absent if some points were not checked or none was run.
std::optional<bool> verdict_on(std::span<const PointReport* const> points) {
  std::set<std::optional<bool>> seen;
  for (const PointReport* const point : points) {
    if (point->data->status != PointStatus::skipped) seen.insert(point->data->verified);
  }
  if (seen.contains(false)) return false;
  return seen.empty() ? std::nullopt : *seen.begin();  // std::set sorts the absent value first
}

/// Returns an entry with the counts, labels and verification of an experiment's points.
IndexExperiment common(std::span<const PointReport* const> points) {
  const auto count = [&](PointStatus status) {
    return static_cast<int>(std::ranges::count(
        points, status, [](const PointReport* point) { return point->data->status; }));
  };
  IndexExperiment result;
  result.ok = count(PointStatus::ok);
  result.failed = count(PointStatus::failed);
  result.skipped = count(PointStatus::skipped);
  result.verified = verdict_on(points);
  std::set<std::string> labels;
  for (const PointReport* const point : points) {
    if (point->data->status == PointStatus::ok) labels.merge(labels_of(*point));
  }
  result.labels.assign(labels.begin(), labels.end());
  return result;
}

IndexExperiment of_curve(const Curve& curve, const std::string& device) {
  IndexExperiment result = common(pointers_to(curve.points));
  result.experiment = experiment_of(curve);
  result.fingerprint = fingerprint(result.experiment, device);
  result.baseline = curve.baseline;
  // Points ascend in ranks, so the values of the largest point with a throughput remain.
  for (const PointReport& point : curve.points) {
    if (!point.throughput) continue;
    result.ranks = point.data->ranks;
    result.nodes = point.data->nodes;
    result.throughput = point.throughput;
    result.efficiency = point.efficiency;
    result.unit = point.throughput_unit;
    result.work_growth = point.work_growth;
    result.counts = results::is_scaling_result(point.data->labels);
  }
  return result;
}

/// Makes the entry for micro-benchmarks of one workload, model, dtype, scaling and placement.
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

void add_machine(const results::RunData& run, IndexRun& into) {
  std::set<std::string> hosts;
  std::set<double> cores;
  std::map<int, int> per_node;
  for (const results::RankFacts& facts : run.rank_facts) {
    hosts.insert(facts.host);
    ++per_node[facts.node];
    if (const auto number = facts.number.find("cores"); number != facts.number.end()) {
      cores.insert(number->second);
    }
  }
  into.hosts.assign(hosts.begin(), hosts.end());
  into.cpu = values_of(run, "cpu_model");
  into.gpu = values_of(run, "gpu_name");
  constexpr double most_cores = 1e6;  // a damaged file may contain any number
  if (cores.size() == 1 && *cores.begin() >= 1 && *cores.begin() <= most_cores) {
    into.cores = static_cast<int>(*cores.begin());
  }
  if (per_node.empty()) return;
  const auto [fewest, most] = std::ranges::minmax(per_node | std::views::values);
  into.fewest_per_node = fewest;
  into.most_per_node = most;
}

/// Returns a host's name up to its first digit or dot; "" for names of 12 hexadecimal digits, which
/// containers have and which are random.
std::string stem(const std::string& host) {
  constexpr std::string_view hexadecimal = "0123456789abcdef";
  constexpr std::size_t container_id = 12;
  if (host.size() == container_id && host.find_first_not_of(hexadecimal) == host.npos) return "";
  return host.substr(0, host.find_first_of("0123456789."));
}

auto machine_key(const IndexRun& run) {
  std::set<std::string> stems;
  for (const std::string& host : run.hosts) stems.insert(stem(host));
  return std::tuple{run.device, run.gpu, run.cpu, run.cores.value_or(0), run.nodes, stems};
}

std::string machine_name(const IndexRun& run) {
  std::vector<std::string> parts{run.gpu, run.cpu,
                                 run.cores ? base::counted(*run.cores, "core") : "",
                                 base::counted(run.nodes, "node")};
  std::erase(parts, "");
  return fmt::format("{}, {}", run.device, base::listed(parts));
}

/// The throughput of one experiment in one run, as one value of a trend over runs.
struct TrendSample {
  std::size_t run = 0;
  const IndexExperiment* experiment = nullptr;
};

IndexTrend trend_of(const std::vector<TrendSample>& samples) {
  const IndexExperiment& any = *samples.front().experiment;
  IndexTrend trend{.experiment = any.experiment,
                   .title = {},
                   .fingerprint = any.fingerprint,
                   .unit = any.unit,
                   .ranks = *any.ranks};
  std::vector<double> values;
  for (const TrendSample& sample : samples) {
    values.push_back(*sample.experiment->throughput);
    trend.runs.push_back(sample.run);
  }
  trend.first = values.front();
  trend.last = values.back();
  trend.median = statistics::median(values).value_or(0);
  trend.minimum = std::ranges::min(values);
  trend.maximum = std::ranges::max(values);
  if (values.size() > 1 && trend.median > 0) {
    trend.spread = (trend.maximum - trend.minimum) / trend.median;
  }
  return trend;
}

/// Returns the trends of the runs on one machine. `of_machine` has the indices of these runs in
/// `runs`, in order of date.
std::vector<IndexTrend> trends_of(const std::vector<IndexRun>& runs,
                                  const std::vector<std::size_t>& of_machine) {
  std::map<std::tuple<std::string, int, std::string, int>, std::vector<TrendSample>> samples;
  for (const std::size_t at : of_machine) {
    for (const IndexExperiment& experiment : runs[at].experiments) {
      if (!experiment.throughput || !experiment.ranks || !experiment.counts) continue;
      auto& into = samples[{experiment.fingerprint, *experiment.ranks, experiment.unit,
                            experiment.nodes.value_or(0)}];
      // A run may have two curves of the same experiment; only the last one counts.
      if (!into.empty() && into.back().run == at) into.pop_back();
      into.push_back({.run = at, .experiment = &experiment});
    }
  }
  std::vector<IndexTrend> trends;
  std::vector<Experiment> experiments;
  for (const auto& [key, all] : samples) {
    trends.push_back(trend_of(all));
    experiments.push_back(trends.back().experiment);
  }
  const std::vector<std::string> names = titles(experiments);
  for (std::size_t i = 0; i < names.size(); ++i) trends[i].title = names[i];
  std::ranges::stable_sort(
      trends, {}, [](const IndexTrend& trend) { return std::tie(trend.title, trend.ranks); });
  return trends;
}

/// Identifies hosts whose names have the same prefix and a number with the same count of digits:
/// node01 and node17 have the prefix "node" and 2 digits.
struct Family {
  std::string prefix;
  std::size_t digits = 0;  ///< count of digits of the number; 0 = a name without a number
  auto operator<=>(const Family&) const = default;
};

std::pair<Family, std::uint64_t> split(const std::string& host) {
  constexpr std::size_t most_digits = 9;
  const std::string name = host.substr(0, host.find('.'));
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::string number = name.substr(last == name.npos ? 0 : last + 1);
  if (number.empty() || number.size() > most_digits) return {{.prefix = name}, 0};
  return {{.prefix = name.substr(0, name.size() - number.size()), .digits = number.size()},
          std::stoull(number)};
}

/// Returns the hosts of a family as text: one name, or the prefix and the first ranges of numbers.
std::string text_of(const Family& family, const std::set<std::uint64_t>& numbers) {
  if (family.digits == 0) return family.prefix;
  if (numbers.size() == 1) {
    return fmt::format("{}{:0{}}", family.prefix, *numbers.begin(), family.digits);
  }
  constexpr std::size_t most_ranges = 4;
  std::vector<std::string> ranges;
  std::size_t left = numbers.size();
  for (auto at = numbers.begin(); at != numbers.end() && ranges.size() < most_ranges;) {
    const std::uint64_t begin = *at;
    std::uint64_t end = begin;
    for (; at != numbers.end() && *at <= end + 1; ++at) {
      end = *at;
      --left;
    }
    ranges.push_back(begin == end
                         ? fmt::format("{:0{}}", begin, family.digits)
                         : fmt::format("{:0{}}-{:0{}}", begin, family.digits, end, family.digits));
  }
  return fmt::format("{}[{}]{}", family.prefix, fmt::join(ranges, ","),
                     left == 0 ? "" : fmt::format(" and {} more", left));
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
                  .planned = run.planned,
                  .points = run.points.size()};
  result.ok_points = static_cast<std::size_t>(
      std::ranges::count(run.points, PointStatus::ok, &results::PointData::status));
  add_machine(run, result);
  for (const Curve& curve : report.curves) {
    result.experiments.push_back(of_curve(curve, run.device));
  }
  // Micro-benchmarks of one family (see family_of) share an entry, adjacent in the list or not.
  const auto family = [](const PointReport& point) { return family_of(*point.data); };
  for (const auto& [unused, points] : grouped(pointers_to(report.benches), family)) {
    result.experiments.push_back(of_benches(points, run.device));
  }
  return result;
}

std::vector<IndexRun> without_copies(std::vector<IndexRun> runs,
                                     std::vector<std::string>& warnings) {
  std::vector<FileContent> contents;
  for (const IndexRun& run : runs) {
    contents.push_back({.id = run.id,
                        .file = run.file,
                        .ok_points = run.ok_points,
                        .points = run.points,
                        .complete = run.complete,
                        .ended = run.ended});
  }
  std::vector<IndexRun> kept;
  for (const std::size_t i : distinct(contents, warnings)) kept.push_back(std::move(runs[i]));
  return kept;
}

Index make_index(std::vector<IndexRun> runs) {
  Index index{.runs = std::move(runs)};
  std::map<decltype(machine_key(index.runs.front())), IndexMachine> machines;
  for (std::size_t i = 0; i < index.runs.size(); ++i) {
    machines[machine_key(index.runs[i])].runs.push_back(i);
  }
  for (auto& [key, machine] : machines) {
    std::ranges::stable_sort(machine.runs, {}, [&](std::size_t at) -> const std::string& {
      return index.runs[at].created;
    });
    std::set<std::string> hosts;
    for (const std::size_t at : machine.runs) {
      hosts.insert(index.runs[at].hosts.begin(), index.runs[at].hosts.end());
    }
    machine.name = machine_name(index.runs[machine.runs.front()]);
    machine.hosts.assign(hosts.begin(), hosts.end());
    machine.trends = trends_of(index.runs, machine.runs);
    index.machines.push_back(std::move(machine));
  }
  return index;
}

std::string shorten_hosts(const std::vector<std::string>& hosts) {
  constexpr std::size_t most_families = 4;
  std::map<Family, std::set<std::uint64_t>> families;
  for (const std::string& host : hosts) {
    const auto [family, number] = split(host);
    families[family].insert(number);
  }
  std::vector<std::string> shown;
  std::size_t left = 0;
  for (const auto& [family, numbers] : families) {
    if (shown.size() < most_families) {
      shown.push_back(text_of(family, numbers));
    } else {
      left += numbers.size();
    }
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     left == 0 ? "" : fmt::format(" and {} more", left));
}

}  // namespace isoscale::analysis::catalog
