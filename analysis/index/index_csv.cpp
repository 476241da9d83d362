// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <vector>

#include "analysis/index/index_tables.hpp"
#include "analysis/render/csv_cells.hpp"
#include "analysis/render/render.hpp"

namespace isoscale::analysis {
namespace {

std::string whole_cell(const std::optional<int>& number) {
  return number ? std::to_string(*number) : "";
}

std::string flag_cell(const std::optional<bool>& flag) {
  if (!flag) return "";
  return *flag ? "true" : "false";
}

std::string options_text(const Experiment& experiment) {
  std::string text;
  for (const auto& [key, value] : experiment.options) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", key, value);
  }
  return text;
}

std::vector<CsvCell> cells_of_run(const IndexRun& run, const std::string& machine) {
  return {{"run", text_cell(run.id)},
          {"file", text_cell(run.file)},
          {"created", text_cell(run.created)},
          {"ended", text_cell(run.ended)},
          {"isoscale_version", text_cell(run.isoscale_version)},
          {"git_hash", text_cell(run.git_hash)},
          {"device", text_cell(run.device)},
          {"machine", text_cell(machine)},
          {"cpu", text_cell(run.cpu)},
          {"gpu", text_cell(run.gpu)},
          {"cores", whole_cell(run.cores)},
          {"hosts", text_cell(shorten_hosts(run.hosts))},
          {"run_status", run.complete ? "complete" : "partial"},
          {"run_ranks", std::to_string(run.ranks)},
          {"run_nodes", std::to_string(run.nodes)}};
}

std::vector<CsvCell> cells_of_experiment(const IndexExperiment& of, const std::string& kind) {
  const Experiment& experiment = of.experiment;
  return {{"kind", kind},
          {"workload", text_cell(experiment.workload)},
          {"model", text_cell(experiment.model)},
          {"dtype", text_cell(experiment.dtype)},
          {"scaling", text_cell(experiment.scaling)},
          {"placement", text_cell(experiment.placement)},
          {"options", text_cell(options_text(experiment))},
          {"experiment", of.fingerprint},
          {"points_ok", std::to_string(of.ok)},
          {"points_failed", std::to_string(of.failed)},
          {"points_skipped", std::to_string(of.skipped)},
          {"ranks", whole_cell(of.ranks)},
          {"nodes", whole_cell(of.nodes)},
          {"throughput", number_cell(of.throughput)},
          {"throughput_unit", text_cell(of.unit)},
          {"baseline", whole_cell(of.baseline)},
          {"efficiency", number_cell(of.efficiency)},
          {"verified", flag_cell(of.verified)},
          {"labels", text_cell(fmt::format("{}", fmt::join(of.labels, ";")))}};
}

std::vector<CsvCell> cells_of(const IndexRun& run, const std::string& machine,
                              const IndexExperiment& of, const std::string& kind) {
  std::vector<CsvCell> cells = cells_of_run(run, machine);
  for (CsvCell& cell : cells_of_experiment(of, kind)) cells.push_back(std::move(cell));
  return cells;
}

}  // namespace

std::string render_index_csv(const IndexReport& report) {
  std::string text = csv_heading(cells_of({}, "", {}, ""));
  for (const IndexMachine& machine : report.index.machines) {
    for (const std::size_t at : machine.runs) {
      const IndexRun& run = report.index.runs[at];
      for (const IndexExperiment& of : run.experiments) {
        text +=
            csv_values(cells_of(run, machine.name, of, of.is_bench ? "micro-benchmark" : "curve"));
      }
      if (run.experiments.empty()) text += csv_values(cells_of(run, machine.name, {}, "none"));
    }
  }
  return text;
}

}  // namespace isoscale::analysis
