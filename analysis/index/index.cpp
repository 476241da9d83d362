// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/index/index.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/launches/distinct.hpp"
#include "analysis/statistics/statistics.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

/// A host's name up to its numbers; the names that containers are given say nothing.
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
  std::vector<std::string> parts{run.device};
  if (!run.gpu.empty()) parts.push_back(run.gpu);
  if (!run.cpu.empty()) parts.push_back(run.cpu);
  if (run.cores) parts.push_back(base::counted(*run.cores, "core"));
  parts.push_back(base::counted(run.nodes, "node"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What one run adds to a trend.
struct Sample {
  std::size_t run = 0;
  const IndexExperiment* experiment = nullptr;
};

IndexTrend trend_of(const std::vector<Sample>& samples) {
  const IndexExperiment& any = *samples.front().experiment;
  IndexTrend trend{.experiment = any.experiment,
                   .title = {},
                   .fingerprint = any.fingerprint,
                   .unit = any.unit,
                   .ranks = *any.ranks};
  std::vector<double> values;
  for (const Sample& sample : samples) {
    values.push_back(*sample.experiment->throughput);
    trend.runs.push_back(sample.run);
  }
  trend.first = values.front();
  trend.last = values.back();
  trend.median = median(values).value_or(0);
  const auto [minimum, maximum] = std::ranges::minmax(values);
  trend.minimum = minimum;
  trend.maximum = maximum;
  if (values.size() > 1 && trend.median > 0) {
    trend.spread = (trend.maximum - trend.minimum) / trend.median;
  }
  return trend;
}

/// Of the runs of a machine, which are in order.
std::vector<IndexTrend> trends_of(const std::vector<IndexRun>& runs,
                                  const std::vector<std::size_t>& of_machine) {
  std::map<std::tuple<std::string, int, std::string, int>, std::vector<Sample>> samples;
  for (const std::size_t at : of_machine) {
    for (const IndexExperiment& experiment : runs[at].experiments) {
      if (!experiment.throughput || !experiment.ranks || !experiment.counts) continue;
      auto& into = samples[{experiment.fingerprint, *experiment.ranks, experiment.unit,
                            experiment.nodes.value_or(0)}];
      // A run may have measured the same twice, as two curves; it counts once, with its last.
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

}  // namespace

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
  Distinct which = distinct(contents);
  std::vector<IndexRun> kept;
  for (const std::size_t i : which.kept) kept.push_back(std::move(runs[i]));
  std::ranges::move(which.warnings, std::back_inserter(warnings));
  return kept;
}

Index make_index(std::vector<IndexRun> runs) {
  Index index{.runs = std::move(runs)};
  std::map<decltype(machine_key(index.runs.front())), IndexMachine> machines;
  for (std::size_t i = 0; i < index.runs.size(); ++i) {
    IndexMachine& machine = machines[machine_key(index.runs[i])];
    machine.runs.push_back(i);
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

}  // namespace isoscale::analysis
