// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/index/index_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "analysis/render/text_escape.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

std::string plural(std::size_t count, std::string_view noun, std::string_view ending) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

/// The day of a time as it is stored.
std::string day(const std::string& created) {
  constexpr std::size_t length = 10;  // 2026-01-02
  return escape(created.substr(0, length));
}

std::string rate(double value, const std::string& unit) {
  std::string text = units::format_count(value, "");
  text.erase(text.find_last_not_of(' ') + 1);
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

/// The micro-benchmarks of a run as one line.
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

/// The cells of an experiment, behind those of its run.
std::vector<std::string> cells_of(const IndexExperiment& of, std::string title,
                                  const IndexRun& run) {
  const auto number = [](const std::optional<int>& value) {
    return value ? std::to_string(*value) : std::string{undefined};
  };
  return {std::move(title),
          fmt::format("{} of {}", number(of.ranks), run.ranks),
          number(of.nodes),
          of.throughput ? rate(*of.throughput, of.unit) : std::string{undefined},
          percent(of.efficiency),
          verified_text(of.verified),
          points_text(of),
          labels_text(of.labels)};
}

/// One line for each experiment of a run, micro-benchmarks last.
std::vector<std::vector<std::string>> lines_of(const IndexRun& run) {
  std::vector<Experiment> curves;
  std::vector<const IndexExperiment*> benches;
  std::set<std::string> names;
  for (const IndexExperiment& of : run.experiments) {
    if (of.is_bench) {
      benches.push_back(&of);
      names.insert(escape(of.experiment.workload));
    } else {
      curves.push_back(of.experiment);
    }
  }
  const std::vector<std::string> of_curves = titles(curves);
  std::vector<std::vector<std::string>> lines;
  for (const IndexExperiment& of : run.experiments) {
    if (!of.is_bench) lines.push_back(cells_of(of, escape(of_curves[lines.size()]), run));
  }
  if (!benches.empty()) {
    lines.push_back(cells_of(joined(benches), fmt::format("{}", fmt::join(names, ", ")), run));
  }
  if (lines.empty()) {
    lines.push_back({"no point was measured", fmt::format("{} of {}", undefined, run.ranks)});
  }
  return lines;
}

std::string short_id(const std::string& id) {
  constexpr std::size_t length = 12;
  return escape(id.substr(0, length));
}

TitledTable run_table(const Index& index, const IndexMachine& machine, Numbered numbered) {
  std::string title = escape(machine.name);
  if (!machine.hosts.empty()) title += ": " + escape(shorten_hosts(machine.hosts));
  TitledTable table{.title = std::move(title), .columns = {}, .rows = {}};
  if (numbered == Numbered::as_launches) table.columns.push_back({"launch"});
  for (const char* const heading : {"began", "run", "Isoscale", "status", "file", "experiment"}) {
    table.columns.push_back({heading, Align::left});
  }
  const std::vector<Column> rest{{"ranks"},
                                 {"nodes"},
                                 {"throughput"},
                                 {"efficiency"},
                                 {"verified"},
                                 {"points", Align::left},
                                 {"labels", Align::left}};
  table.columns.insert(table.columns.end(), rest.begin(), rest.end());
  for (const std::size_t at : machine.runs) {
    const IndexRun& run = index.runs[at];
    std::vector<std::string> begin{escape(run.created), short_id(run.id),
                                   escape(run.isoscale_version + " " + run.git_hash),
                                   run.complete ? "complete" : "partial", escape(run.file)};
    if (numbered == Numbered::as_launches) begin.insert(begin.begin(), std::to_string(at + 1));
    for (std::vector<std::string>& line : lines_of(run)) {
      Row row{.cells = begin, .tail = ""};
      row.cells.insert(row.cells.end(), line.begin(), line.end());
      table.rows.push_back(std::move(row));
      begin.assign(begin.size(), "");
    }
  }
  return table;
}

TitledTable trend_table(const Index& index, const IndexMachine& machine) {
  TitledTable table{.title = "throughput over time",
                    .columns = {{"experiment", Align::left},
                                {"ranks"},
                                {"runs"},
                                {"first"},
                                {"last"},
                                {"median"},
                                {"least"},
                                {"most"},
                                {"spread"},
                                {"from", Align::left},
                                {"to", Align::left}},
                    .rows = {}};
  for (const IndexTrend& trend : machine.trends) {
    if (trend.runs.size() < 2) continue;
    table.rows.push_back(
        {.cells = {escape(trend.title), std::to_string(trend.ranks),
                   std::to_string(trend.runs.size()), rate(trend.first, ""), rate(trend.last, ""),
                   rate(trend.median, trend.unit), rate(trend.minimum, ""), rate(trend.maximum, ""),
                   percent(trend.spread), day(index.runs[trend.runs.front()].created),
                   day(index.runs[trend.runs.back()].created)},
         .tail = ""});
  }
  return table;
}

}  // namespace

std::string index_headline(const Index& index, Numbered numbered) {
  const std::string what = numbered == Numbered::as_launches
                               ? plural(index.runs.size(), "launch", "es")
                               : plural(index.runs.size(), "run", "s");
  if (index.runs.empty()) return what;
  const auto [first, last] = std::ranges::minmax(index.runs, {}, &IndexRun::created);
  const std::string begin = day(first.created), end = day(last.created);
  return fmt::format("{} on {}, {}", what, plural(index.machines.size(), "machine", "s"),
                     begin == end ? begin : begin + " to " + end);
}

std::vector<TitledTable> index_tables(const Index& index, const IndexMachine& machine,
                                      Numbered numbered) {
  std::vector<TitledTable> tables{run_table(index, machine, numbered)};
  TitledTable trends = trend_table(index, machine);
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
      "Machines are told apart by device, CPU, GPU, cores, nodes, ranks per node, and the names of "
      "hosts up to their numbers.",
      "Throughput and efficiency are those at the largest rank count of an experiment; verified: "
      "all points that were played.",
      "Over time: what was measured at that count, in order of date, without points labelled "
      "oversubscribed, shared-gpu or injected. Whether a change is established: isoscale compare."};
}

}  // namespace isoscale::analysis
