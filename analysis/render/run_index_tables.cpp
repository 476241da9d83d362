// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/summary_findings_and_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/render/render.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"

/// Writes an index of runs as tables, as JSON, and as CSV with a line per experiment of each run.
namespace isoscale::analysis::render {
namespace {

using catalog::IndexExperiment;
using catalog::IndexRun;
using catalog::IndexTrend;

/// Returns the date in a stored time, such as "2026-01-02".
std::string day(const std::string& created) {
  constexpr std::size_t length = 10;  // 2026-01-02
  return escape(created.substr(0, length));
}

/// Returns "2026-01-02 03:04" from a stored time.
std::string minute(const std::string& created) {
  constexpr std::size_t date = 10, time = 5;
  if (created.size() < date + 1 + time) return created;
  return created.substr(0, date) + " " + created.substr(date + 1, time);
}

constexpr std::size_t short_id = 12;  ///< characters of a run's id in tables

constexpr Metric<IndexRun> index_run_metrics[] = {
    {"~began", "began", Unit::text, member<&IndexRun::created, minute>},
    {"~run", "run", Unit::text, [](auto& run) { return value_json(run.id.substr(0, short_id)); }},
    {"~isoscale", "Isoscale", Unit::text,
     [](auto& run) { return value_json(run.isoscale_version + " " + run.git_hash); }},
    {"~status", "status", Unit::text,
     [](auto& run) { return value_json(run.complete ? "complete" : "partial"); }},
    {"ranks", "ranks", Unit::count, member<&IndexRun::ranks>},
    {"nodes", "nodes", Unit::count, member<&IndexRun::nodes>},
    {"~points_ok", "points ok", Unit::count,
     [](auto& run) {
       const auto planned = static_cast<std::size_t>(std::max(run.planned, 0));
       return value_json(fmt::format("{} of {}", run.ok_points, std::max(run.points, planned)));
     }},
    {"file", "file", Unit::text, member<&IndexRun::file>},
    {"ended", "", Unit::text, member<&IndexRun::ended>},
    {"git_hash", "", Unit::text, member<&IndexRun::git_hash>},
    {"ranks_per_node", "", Unit::text,
     [](const IndexRun& run) -> Value {
       if (run.most_per_node <= 0) return {};
       return Json{{"fewest", run.fewest_per_node}, {"most", run.most_per_node}};
     }},
    {"hosts", "", Unit::text, plain<&IndexRun::hosts>},
    {"cpu", "", Unit::text, member<&IndexRun::cpu>},
    {"gpu", "", Unit::text, member<&IndexRun::gpu>},
    {"cores", "", Unit::count, member<&IndexRun::cores>},
};

std::string rate(double value, const std::string& unit) {
  return value_text(value, Unit::prefixed) + (unit.empty() ? "" : " " + unit);
}

std::string points_text(const IndexExperiment& of) {
  std::vector<std::string> parts;
  for (const auto& [count, what] :
       {std::pair{of.ok, "ok"}, {of.failed, "failed"}, {of.skipped, "skipped"}}) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  }
  return base::listed(parts);
}

/// Merges all micro-benchmarks of a run into one entry of the index.
IndexExperiment together(const std::vector<const IndexExperiment*>& benches) {
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

/// A row of a table: a run, and one of its experiments, or null for the run as a whole.
struct Line {
  std::size_t run = 0;  ///< index in catalog::Index::runs
  const IndexExperiment* experiment = nullptr;
};

/// Returns a table with a row for each of `lines`. Its columns are the number of the launch (if
/// runs are numbered), then the metrics of runs that `of_runs` names, then the metrics of
/// experiments, or columns of `others`, that `of_experiments` names.
DocumentTable table_of_lines(const catalog::Index& index, const std::vector<const Line*>& lines,
                             Numbered numbered, std::string title, std::string_view of_runs,
                             std::string_view of_experiments,
                             const std::vector<OtherColumn>& others = {}) {
  std::vector<const IndexRun*> runs;
  std::vector<const IndexExperiment*> experiments;
  std::vector<Value> launches;
  for (const Line* const line : lines) {
    runs.push_back(&index.runs[line->run]);
    experiments.push_back(line->experiment);
    launches.push_back(numbered == Numbered::as_launches ? Value(line->run + 1) : Value());
  }
  DocumentTable table =
      table_of<IndexRun>(index_run_metrics, runs, fmt::format("launch {}", of_runs),
                         {{{"launch", "launch", Unit::count}, launches}});
  if (!of_experiments.empty()) {
    add_columns(table, table_of<IndexExperiment>(index_experiment_metrics(), experiments,
                                                 of_experiments, others));
  }
  table.title = std::move(title);
  return table;
}

/// Returns the table of a machine's runs, in the order of their dates.
DocumentTable run_table(const catalog::Index& index, const catalog::IndexMachine& machine,
                        Numbered numbered) {
  std::vector<Line> lines;
  for (const std::size_t at : machine.runs) lines.push_back({.run = at});
  const std::string hosts =
      machine.hosts.empty() ? "" : ": " + catalog::shorten_hosts(machine.hosts);
  return table_of_lines(index, pointers_to(lines), numbered, machine.name + hosts,
                        "began run isoscale status ranks nodes points_ok file", "");
}

std::vector<DocumentTable> experiment_tables(const catalog::Index& index,
                                             const catalog::IndexMachine& machine,
                                             Numbered numbered) {
  std::vector<Line> lines;
  for (const std::size_t at : machine.runs) {
    for (const IndexExperiment& of : index.runs[at].experiments) {
      if (!of.is_bench) lines.push_back({.run = at, .experiment = &of});
    }
  }
  const auto groups =
      grouped(pointers_to(lines), [](const Line& line) { return line.experiment->fingerprint; });
  std::vector<Experiment> experiments;
  for (const auto& [unused, alike] : groups) {
    experiments.push_back(alike.front()->experiment->experiment);
  }
  std::vector<DocumentTable> tables;
  for (const std::string& title : titles(experiments)) {
    tables.push_back(table_of_lines(index, groups[tables.size()].second, numbered, title,
                                    "began run",
                                    "ranks nodes rate efficiency verified points_text labels"));
  }
  return tables;
}

/// Returns a table with one row for each run that has micro-benchmarks; empty if no run has any.
DocumentTable bench_table(const catalog::Index& index, const catalog::IndexMachine& machine,
                          Numbered numbered) {
  std::vector<IndexExperiment> all;
  all.reserve(machine.runs.size());  // the lines have pointers to its entries
  std::vector<Line> lines;
  std::vector<Value> names_of;
  for (const std::size_t at : machine.runs) {
    std::vector<const IndexExperiment*> benches;
    std::set<std::string> names;
    for (const IndexExperiment& of : index.runs[at].experiments) {
      if (!of.is_bench) continue;
      benches.push_back(&of);
      names.insert(of.experiment.workload);
    }
    if (benches.empty()) continue;
    all.push_back(together(benches));
    lines.push_back({.run = at, .experiment = &all.back()});
    names_of.push_back(value_json(base::listed(names)));
  }
  return table_of_lines(index, pointers_to(lines), numbered, "micro-benchmarks", "began run",
                        "ranks nodes verified points_text names labels",
                        {{{"names", "of"}, names_of}});
}

DocumentTable trend_table(const catalog::IndexMachine& machine) {
  std::vector<const IndexTrend*> trends;
  for (const IndexTrend& trend : machine.trends) {
    if (trend.runs.size() >= 2) trends.push_back(&trend);
  }
  DocumentTable table = table_of<IndexTrend>(
      index_trend_metrics(), trends, "title ranks runs first last median_rate min max spread");
  table.title = "throughput over time";
  return table;
}

constexpr std::string_view index_run_columns =
    "run=id file created ended isoscale_version git_hash device machine cpu gpu cores "
    "hosts=hosts_text run_status=status run_ranks=ranks run_nodes=nodes";
constexpr std::string_view index_experiment_columns =
    "kind workload model dtype scaling placement options experiment=fingerprint "
    "points_ok=points/ok points_failed=points/failed points_skipped=points/skipped ranks nodes "
    "throughput=throughput/value throughput_unit=throughput/unit baseline efficiency verified "
    "labels work_growth";

Json experiment_json(const IndexExperiment& of) {
  Json object = experiment_head_json(of.experiment);
  object.update(object_of<IndexExperiment>(index_experiment_metrics(), of));
  return object;
}

/// Returns the JSON object of a run, without its experiments.
Json index_run_json(const IndexRun& run, const std::string& machine) {
  Json object = run_head_json(run, run.file);
  object.update(object_of<IndexRun>(index_run_metrics, run, "ended git_hash ranks_per_node"));
  object["machine"] = machine;
  object.update(object_of<IndexRun>(index_run_metrics, run, "hosts cpu gpu cores"));
  return object;
}

/// Returns the ids of the runs with the indices `runs`.
Json ids_json(const catalog::Index& index, const std::vector<std::size_t>& runs) {
  return list_json(runs, [&](std::size_t at) { return Json(index.runs[at].id); });
}

Json trend_json(const catalog::Index& index, const IndexTrend& trend) {
  Json object = object_of<IndexTrend>(index_trend_metrics(), trend, "fingerprint title ranks unit");
  object["runs"] = ids_json(index, trend.runs);
  object["from"] = index.runs[trend.runs.front()].created;
  object["to"] = index.runs[trend.runs.back()].created;
  object.update(
      object_of<IndexTrend>(index_trend_metrics(), trend, "first last median min max spread"));
  return object;
}

Json machines_json(const catalog::Index& index) {
  return list_json(index.machines, [&](const catalog::IndexMachine& machine) {
    return Json{{"name", machine.name},
                {"hosts", machine.hosts},
                {"runs", ids_json(index, machine.runs)},
                {"throughput_over_time", list_json(machine.trends, [&](const IndexTrend& trend) {
                   return trend_json(index, trend);
                 })}};
  });
}

}  // namespace

Metrics<IndexExperiment> index_experiment_metrics() {
  using enum Unit;
  using E = IndexExperiment;
  static constexpr Metric<IndexExperiment> all[] = {
      {"fingerprint", "", text, plain<&E::fingerprint>},
      {"micro_benchmark", "", text, plain<&E::is_bench>},
      {"points", "", text,
       [](const IndexExperiment& of) -> Value {
         return Json{{"ok", of.ok}, {"failed", of.failed}, {"skipped", of.skipped}};
       }},
      {"ranks", "on ranks", count, member<&E::ranks>},
      {"nodes", "nodes", count, member<&E::nodes>},
      {"throughput", "throughput", prefixed,
       [](const IndexExperiment& of) -> Value {
         return Json{{"value", number_or_null(of.throughput)}, {"unit", text_or_null(of.unit)}};
       }},
      {"~rate", "throughput", share,
       [](auto& of) { return value_json(of.throughput ? rate(*of.throughput, of.unit) : ""); }},
      {"work_growth", "", ratio,
       [](auto& of) {
         return value_json(of.throughput ? std::optional{of.work_growth} : std::nullopt);
       }},
      {"baseline", "", count, member<&E::baseline>},
      {"efficiency", "efficiency", share, member<&E::efficiency>},
      {"verified", "verified", share, member<&E::verified>},
      {"~points_text", "points", text, member<points_text>},
      {"labels", "labels", text, plain<&E::labels>},
  };
  return all;
}

Metrics<IndexTrend> index_trend_metrics() {
  using enum Unit;
  using T = IndexTrend;
  static constexpr Metric<IndexTrend> all[] = {
      {"fingerprint", "", text, plain<&T::fingerprint>},
      {"title", "experiment", text, plain<&T::title>},
      {"ranks", "ranks", count, member<&T::ranks>},
      {"unit", "", text, member<&T::unit>},
      {"runs", "runs", count, [](auto& at) { return Value(at.runs.size()); }},
      {"first", "first", prefixed, plain<&T::first>},
      {"last", "last", prefixed, plain<&T::last>},
      {"median", "median", prefixed, plain<&T::median>},
      {"~median_rate", "median", share,
       [](auto& at) { return value_json(rate(at.median, at.unit)); }},
      {"min", "least", prefixed, plain<&T::minimum>},
      {"max", "most", prefixed, plain<&T::maximum>},
      {"spread", "range", share, member<&T::spread>},
  };
  return all;
}

std::string index_headline(const catalog::Index& index, Numbered numbered) {
  std::string what =
      base::counted(index.runs.size(), numbered == Numbered::as_launches ? "launch" : "run");
  if (index.runs.empty()) return what;
  const auto [first, last] = std::ranges::minmax(index.runs, {}, &catalog::IndexRun::created);
  const std::string begin = day(first.created), end = day(last.created);
  return fmt::format("{} on {}, {}", what, base::counted(index.machines.size(), "machine"),
                     begin == end ? begin : begin + " to " + end);
}

std::vector<DocumentTable> index_tables(const catalog::Index& index,
                                        const catalog::IndexMachine& machine, Numbered numbered) {
  std::vector<DocumentTable> tables = experiment_tables(index, machine, numbered);
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
      "Runs are of one machine if device, CPU, GPU, cores, nodes and host names (without their "
      "numbers) are equal.",
      "Throughput and efficiency are those at the largest rank count of an experiment; verified: "
      "whether all points that ran are verified.",
      "Over time: at that rank count, by date, without points labelled oversubscribed, shared-gpu "
      "or injected.",
      "To see whether a change is established, use isoscale compare."};
}

Json index_json(const catalog::Index& index) {
  // The runs stay in the order given; they are not grouped by machine.
  std::vector<std::string> machines(index.runs.size());
  for (const catalog::IndexMachine& machine : index.machines) {
    for (const std::size_t at : machine.runs) machines[at] = machine.name;
  }
  Json runs = Json::array();
  for (std::size_t i = 0; i < index.runs.size(); ++i) {
    runs.push_back(index_run_json(index.runs[i], machines[i]));
    runs.back()["experiments"] = list_json(index.runs[i].experiments, experiment_json);
  }
  const auto unreadable = [](const catalog::Unreadable& file) {
    return Json{{"file", file.file}, {"reason", file.reason}};
  };
  return {{"index", runs},
          {"machines", machines_json(index)},
          {"unreadable", list_json(index.unreadable, unreadable)}};
}

Json index_report_json(const IndexReport& report) {
  // The objects of runs have no key for points: an empty list would look as if there were none.
  const auto head = [](const IndexRun& run) { return run_head_json(run, run.file); };
  Json object{{"schema_version", report_schema_version},
              {"runs", list_json(report.index.runs, head)},
              {"curves", Json::array()},
              {"warnings", report.warnings},
              {"index_only", true}};
  object.update(index_json(report.index));
  return object;
}

std::string render_index_json(const IndexReport& report) {
  return dumped(index_report_json(report));
}

std::string render_index_csv(const IndexReport& report) {
  const auto cells_of = [](const Json& run, const Json& experiment) {
    std::vector<CsvCell> cells;
    add_csv_cells(cells, run, index_run_columns);
    add_csv_cells(cells, experiment, index_experiment_columns);
    add_csv_cells(cells, run, "points_planned=planned");
    return cells;
  };
  std::string text = csv_heading(cells_of({}, {}));
  for (const catalog::IndexMachine& machine : report.index.machines) {
    for (const std::size_t at : machine.runs) {
      const IndexRun& run = report.index.runs[at];
      Json line = index_run_json(run, machine.name);
      line["hosts_text"] = catalog::shorten_hosts(run.hosts);
      std::vector<IndexExperiment> experiments = run.experiments;
      if (experiments.empty()) experiments.emplace_back();
      for (const IndexExperiment& of : experiments) {
        Json experiment = experiment_json(of);
        experiment["kind"] = run.experiments.empty() ? "none"
                             : of.is_bench           ? "micro-benchmark"
                                                     : "curve";
        text += csv_values(cells_of(line, experiment));
      }
    }
  }
  return text;
}

}  // namespace isoscale::analysis::render
