// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/catalog_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/render/text.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

/// Returns the day of a stored time.
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

std::string points_text(const IndexExperiment& of) {
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

/// Joins the micro-benchmarks of a run to one line.
IndexExperiment joined(const std::vector<const IndexExperiment*>& benches) {
  IndexExperiment all;
  std::set<std::string> labels;
  all.verified = true;
  for (const IndexExperiment* const of : benches) {
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

std::vector<Column> columns_of(Numbered numbered, std::vector<Column> rest) {
  std::vector<Column> columns{{"began", Align::left}, {"run", Align::left}};
  if (numbered == Numbered::as_launches) columns.insert(columns.begin(), {"launch"});
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

/// Returns a table row that identifies a run, followed by `rest`.
Row row_of(const Index& index, std::size_t at, Numbered numbered, std::vector<std::string> rest) {
  const IndexRun& run = index.runs[at];
  std::vector<std::string> cells{minute(run.created), short_id(run.id)};
  if (numbered == Numbered::as_launches) cells.insert(cells.begin(), std::to_string(at + 1));
  cells.insert(cells.end(), rest.begin(), rest.end());
  return {.cells = std::move(cells), .tail = ""};
}

std::string number_text(const std::optional<int>& value) {
  return value ? std::to_string(*value) : std::string{undefined};
}

/// Returns the table of a machine's runs, by date.
TitledTable run_table(const Index& index, const IndexMachine& machine, Numbered numbered) {
  std::string title = escape(machine.name);
  if (!machine.hosts.empty()) title += ": " + escape(shorten_hosts(machine.hosts));
  TitledTable table{.title = std::move(title),
                    .columns = columns_of(numbered, {{"Isoscale", Align::left},
                                                     {"status", Align::left},
                                                     {"ranks"},
                                                     {"nodes"},
                                                     {"points ok"},
                                                     {"file", Align::left}}),
                    .rows = {}};
  for (const std::size_t at : machine.runs) {
    const IndexRun& run = index.runs[at];
    table.rows.push_back(row_of(
        index, at, numbered,
        {escape(run.isoscale_version + " " + run.git_hash), run.complete ? "complete" : "partial",
         std::to_string(run.ranks), std::to_string(run.nodes),
         fmt::format("{} of {}", run.ok_points, run.points), escape(run.file)}));
  }
  return table;
}

/// Returns an empty table for the results of one experiment in each run of a machine, one run below
/// the other.
TitledTable experiment_table(std::string title, Numbered numbered) {
  return {.title = std::move(title),
          .columns = columns_of(numbered, {{"on ranks"},
                                           {"nodes"},
                                           {"throughput"},
                                           {"efficiency"},
                                           {"verified"},
                                           {"points", Align::left},
                                           {"labels", Align::left}}),
          .rows = {}};
}

std::vector<TitledTable> experiment_tables(const Index& index, const IndexMachine& machine,
                                           Numbered numbered) {
  std::vector<Experiment> experiments;
  std::map<std::string, std::size_t> place;  // by fingerprint
  for (const std::size_t at : machine.runs) {
    for (const IndexExperiment& of : index.runs[at].experiments) {
      if (of.is_bench || !place.try_emplace(of.fingerprint, experiments.size()).second) continue;
      experiments.push_back(of.experiment);
    }
  }
  std::vector<TitledTable> tables;
  for (const std::string& title : titles(experiments)) {
    tables.push_back(experiment_table(escape(title), numbered));
  }
  for (const std::size_t at : machine.runs) {
    for (const IndexExperiment& of : index.runs[at].experiments) {
      if (of.is_bench) continue;
      tables[place.at(of.fingerprint)].rows.push_back(
          row_of(index, at, numbered,
                 {number_text(of.ranks), number_text(of.nodes),
                  of.throughput ? rate(*of.throughput, of.unit) : std::string{undefined},
                  percent(of.efficiency), verified_text(of.verified), points_text(of),
                  labels_text(of.labels)}));
    }
  }
  return tables;
}

/// Returns a table with a line for the micro-benchmarks of each run; no rows where there are none.
TitledTable bench_table(const Index& index, const IndexMachine& machine, Numbered numbered) {
  TitledTable table{.title = "micro-benchmarks",
                    .columns = columns_of(numbered, {{"on ranks"},
                                                     {"nodes"},
                                                     {"verified"},
                                                     {"points", Align::left},
                                                     {"of", Align::left},
                                                     {"labels", Align::left}}),
                    .rows = {}};
  for (const std::size_t at : machine.runs) {
    std::vector<const IndexExperiment*> benches;
    std::set<std::string> names;
    for (const IndexExperiment& of : index.runs[at].experiments) {
      if (!of.is_bench) continue;
      benches.push_back(&of);
      names.insert(escape(of.experiment.workload));
    }
    if (benches.empty()) continue;
    const IndexExperiment all = joined(benches);
    table.rows.push_back(row_of(
        index, at, numbered,
        {number_text(all.ranks), number_text(all.nodes), verified_text(all.verified),
         points_text(all), fmt::format("{}", fmt::join(names, ", ")), labels_text(all.labels)}));
  }
  return table;
}

TitledTable trend_table(const IndexMachine& machine) {
  TitledTable table{.title = "throughput over time",
                    .columns = {{"experiment", Align::left},
                                {"ranks"},
                                {"runs"},
                                {"first"},
                                {"last"},
                                {"median"},
                                {"least"},
                                {"most"},
                                {"range"}},
                    .rows = {}};
  for (const IndexTrend& trend : machine.trends) {
    if (trend.runs.size() < 2) continue;
    table.rows.push_back(
        {.cells = {escape(trend.title), std::to_string(trend.ranks),
                   std::to_string(trend.runs.size()), rate(trend.first, ""), rate(trend.last, ""),
                   rate(trend.median, trend.unit), rate(trend.minimum, ""), rate(trend.maximum, ""),
                   percent(trend.spread)},
         .tail = ""});
  }
  return table;
}

}  // namespace

std::string index_headline(const Index& index, Numbered numbered) {
  const std::string what = numbered == Numbered::as_launches
                               ? base::counted(index.runs.size(), "launch")
                               : base::counted(index.runs.size(), "run");
  if (index.runs.empty()) return what;
  const auto [first, last] = std::ranges::minmax(index.runs, {}, &IndexRun::created);
  const std::string begin = day(first.created), end = day(last.created);
  return fmt::format("{} on {}, {}", what, base::counted(index.machines.size(), "machine"),
                     begin == end ? begin : begin + " to " + end);
}

std::vector<TitledTable> index_tables(const Index& index, const IndexMachine& machine,
                                      Numbered numbered) {
  std::vector<TitledTable> tables{run_table(index, machine, numbered)};
  for (TitledTable& table : experiment_tables(index, machine, numbered)) {
    tables.push_back(std::move(table));
  }
  if (TitledTable benches = bench_table(index, machine, numbered); !benches.rows.empty()) {
    tables.push_back(std::move(benches));
  }
  TitledTable trends = trend_table(machine);
  if (!trends.rows.empty()) tables.push_back(std::move(trends));
  return tables;
}

Facts index_warnings(const Index& index) {
  Facts facts;
  for (const Unreadable& file : index.unreadable) {
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

}  // namespace isoscale::analysis
