// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/catalog_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analysis/render/text.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::render {
namespace {

/// Returns the date of a stored time.
std::string day(const std::string& created) {
  constexpr std::size_t length = 10;  // 2026-01-02
  return escape(created.substr(0, length));
}

std::string rate(double value, const std::string& unit) {
  const std::string text = count_text(value);
  return unit.empty() ? text : text + " " + escape(unit);
}

std::string verified_text(const std::optional<bool>& verified) {
  if (!verified) return std::string{undefined};
  return *verified ? "yes" : "NO";
}

std::string points_text(const catalog::IndexExperiment& of) {
  std::vector<std::string> parts;
  for (const auto& [count, what] :
       {std::pair{of.ok, "ok"}, {of.failed, "failed"}, {of.skipped, "skipped"}}) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string labels_text(const std::vector<std::string>& labels) {
  return escape(fmt::format("{}", fmt::join(labels, ", ")));
}

/// Merges all micro-benchmarks of a run into one entry.
catalog::IndexExperiment joined(const std::vector<const catalog::IndexExperiment*>& benches) {
  catalog::IndexExperiment all;
  std::set<std::string> labels;
  all.verified = true;
  for (const catalog::IndexExperiment* const of : benches) {
    all.ok += of->ok;
    all.failed += of->failed;
    all.skipped += of->skipped;
    labels.insert(of->labels.begin(), of->labels.end());
    if (of->ranks && *of->ranks > all.ranks.value_or(0)) {
      all.ranks = of->ranks;
      all.nodes = of->nodes;
    }
    if (all.verified != false && of->verified != true) all.verified = of->verified;
  }
  all.labels.assign(labels.begin(), labels.end());
  return all;
}

std::string short_id(const std::string& id) {
  constexpr std::size_t length = 12;
  return escape(id.substr(0, length));
}

/// Returns "2026-01-02 03:04" from a stored time.
std::string minute(const std::string& created) {
  constexpr std::size_t date = 10, time = 5;
  if (created.size() < date + 1 + time) return escape(created);
  return escape(created.substr(0, date) + " " + created.substr(date + 1, time));
}

/// Returns the cells that identify a run, followed by `rest`.
std::vector<Cell> cells_of(const catalog::Index& index, std::size_t at, Numbered numbered,
                           std::vector<Cell> rest) {
  const catalog::IndexRun& run = index.runs[at];
  std::vector<Cell> cells;
  if (numbered == Numbered::as_launches) cells.push_back({"launch", std::to_string(at + 1)});
  cells.push_back(words_cell("began", minute(run.created)));
  cells.push_back(words_cell("run", short_id(run.id)));
  std::ranges::move(rest, std::back_inserter(cells));
  return cells;
}

std::string number_text(const std::optional<int>& value) {
  return value ? std::to_string(*value) : std::string{undefined};
}

/// Returns the table of a machine's runs, by date.
TitledTable run_table(const catalog::Index& index, const catalog::IndexMachine& machine,
                      Numbered numbered) {
  TitledTable table{escape(machine.name)};
  if (!machine.hosts.empty()) table.title += ": " + escape(catalog::shorten_hosts(machine.hosts));
  for (const std::size_t at : machine.runs) {
    const catalog::IndexRun& run = index.runs[at];
    table.add(cells_of(index, at, numbered,
                       {words_cell("Isoscale", escape(run.isoscale_version + " " + run.git_hash)),
                        words_cell("status", run.complete ? "complete" : "partial"),
                        {"ranks", std::to_string(run.ranks)},
                        {"nodes", std::to_string(run.nodes)},
                        {"points ok", fmt::format("{} of {}", run.ok_points, run.points)},
                        words_cell("file", escape(run.file))}));
  }
  return table;
}

std::vector<TitledTable> experiment_tables(const catalog::Index& index,
                                           const catalog::IndexMachine& machine,
                                           Numbered numbered) {
  std::vector<Experiment> experiments;
  std::map<std::string, std::size_t> place;  // by fingerprint
  for (const std::size_t at : machine.runs) {
    for (const catalog::IndexExperiment& of : index.runs[at].experiments) {
      if (of.is_bench || !place.try_emplace(of.fingerprint, experiments.size()).second) continue;
      experiments.push_back(of.experiment);
    }
  }
  std::vector<TitledTable> tables;
  for (const std::string& title : titles(experiments)) tables.push_back({escape(title)});
  for (const std::size_t at : machine.runs) {
    for (const catalog::IndexExperiment& of : index.runs[at].experiments) {
      if (of.is_bench) continue;
      tables[place.at(of.fingerprint)].add(cells_of(
          index, at, numbered,
          {{"on ranks", number_text(of.ranks)},
           {"nodes", number_text(of.nodes)},
           {"throughput", of.throughput ? rate(*of.throughput, of.unit) : std::string{undefined}},
           {"efficiency", percent(of.efficiency)},
           {"verified", verified_text(of.verified)},
           words_cell("points", points_text(of)),
           words_cell("labels", labels_text(of.labels))}));
    }
  }
  return tables;
}

/// Returns a table with one row for the micro-benchmarks of each run; it has no rows if there are
/// none.
TitledTable bench_table(const catalog::Index& index, const catalog::IndexMachine& machine,
                        Numbered numbered) {
  TitledTable table{"micro-benchmarks"};
  for (const std::size_t at : machine.runs) {
    std::vector<const catalog::IndexExperiment*> benches;
    std::set<std::string> names;
    for (const catalog::IndexExperiment& of : index.runs[at].experiments) {
      if (!of.is_bench) continue;
      benches.push_back(&of);
      names.insert(escape(of.experiment.workload));
    }
    if (benches.empty()) continue;
    const catalog::IndexExperiment all = joined(benches);
    table.add(cells_of(index, at, numbered,
                       {{"on ranks", number_text(all.ranks)},
                        {"nodes", number_text(all.nodes)},
                        {"verified", verified_text(all.verified)},
                        words_cell("points", points_text(all)),
                        words_cell("of", fmt::format("{}", fmt::join(names, ", "))),
                        words_cell("labels", labels_text(all.labels))}));
  }
  return table;
}

TitledTable trend_table(const catalog::IndexMachine& machine) {
  TitledTable table{"throughput over time"};
  for (const catalog::IndexTrend& trend : machine.trends) {
    if (trend.runs.size() < 2) continue;
    table.add({words_cell("experiment", escape(trend.title)),
               {"ranks", std::to_string(trend.ranks)},
               {"runs", std::to_string(trend.runs.size())},
               {"first", rate(trend.first, "")},
               {"last", rate(trend.last, "")},
               {"median", rate(trend.median, trend.unit)},
               {"least", rate(trend.minimum, "")},
               {"most", rate(trend.maximum, "")},
               {"range", percent(trend.spread)}});
  }
  return table;
}

}  // namespace

std::string index_headline(const catalog::Index& index, Numbered numbered) {
  const std::string what = numbered == Numbered::as_launches
                               ? base::counted(index.runs.size(), "launch")
                               : base::counted(index.runs.size(), "run");
  if (index.runs.empty()) return what;
  const auto [first, last] = std::ranges::minmax(index.runs, {}, &catalog::IndexRun::created);
  const std::string begin = day(first.created), end = day(last.created);
  return fmt::format("{} on {}, {}", what, base::counted(index.machines.size(), "machine"),
                     begin == end ? begin : begin + " to " + end);
}

std::vector<TitledTable> index_tables(const catalog::Index& index,
                                      const catalog::IndexMachine& machine, Numbered numbered) {
  std::vector<TitledTable> tables = experiment_tables(index, machine, numbered);
  tables.insert(tables.begin(), run_table(index, machine, numbered));
  tables.push_back(bench_table(index, machine, numbered));
  tables.push_back(trend_table(machine));
  return tables;
}

Facts index_warnings(const catalog::Index& index) {
  Facts facts;
  for (const catalog::Unreadable& file : index.unreadable) {
    facts.emplace_back("WARNING", "not read: " + escape(file.reason));
  }
  return facts;
}

std::vector<std::string> index_key() {
  return {
      "Machines differ by device, CPU, GPU, cores, nodes, ranks per node, and the names of "
      "hosts up to their numbers.",
      "Throughput and efficiency are those at the largest rank count of an experiment; verified: "
      "all points that were played.",
      "Over time: at that count, by date, without points labelled oversubscribed, shared-gpu or "
      "injected.",
      "Whether a change is established: isoscale compare."};
}

}  // namespace isoscale::analysis::render
