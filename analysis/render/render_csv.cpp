// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/render/catalog_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "results/point_facts.hpp"

namespace isoscale::analysis {
namespace {

std::string joined_options(const results::PointData& data) {
  std::string text;
  for (const auto& [key, value] : data.options) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", key, value);
  }
  return text;
}

std::vector<CsvCell> what_ran(const RunReport& report, const PointReport& point) {
  const results::RunData& run = *report.data;
  const results::PointData& data = *point.data;
  return {
      {"run", text_cell(run.id)},
      {"file", text_cell(report.file)},
      {"created", text_cell(run.created)},
      {"isoscale_version", text_cell(run.isoscale_version)},
      {"device", text_cell(run.device)},
      {"run_ranks", std::to_string(run.ranks)},
      {"run_nodes", std::to_string(run.nodes)},
      {"run_status", run.complete ? "complete" : "partial"},
      {"index", std::to_string(data.index)},
      {"workload", text_cell(data.workload)},
      {"model", text_cell(data.model)},
      {"dtype", text_cell(data.dtype)},
      {"dp", std::to_string(data.mesh.dp)},
      {"tp", std::to_string(data.mesh.tp)},
      {"pp", std::to_string(data.mesh.pp)},
      {"cp", std::to_string(data.mesh.cp)},
      {"ep", std::to_string(data.mesh.ep)},
      {"ranks", std::to_string(data.ranks)},
      {"nodes", std::to_string(data.nodes)},
      {"scaling", text_cell(data.scaling)},
      {"placement", text_cell(data.placement)},
      {"options", text_cell(joined_options(data))},
      {"labels", text_cell(fmt::format("{}", fmt::join(point.labels, ";")))},
      {"status", std::string{results::name(data.status)}},
      {"reason", text_cell(data.reason)},
      {"verified", data.verified ? (*data.verified ? "true" : "false") : ""},
  };
}

std::vector<CsvCell> what_came_out(const PointReport& point) {
  const auto& time = point.step_time;
  const auto of_time = [&time](double statistics::Estimate::*member) {
    return time ? number_cell(*time.*member) : "";
  };
  const auto& mean = point.breakdown.mean;
  std::vector<CsvCell> cells{
      {"step_time_median", of_time(&statistics::Estimate::median)},
      {"step_time_lower", number_cell(time ? time->lower : std::nullopt)},
      {"step_time_upper", number_cell(time ? time->upper : std::nullopt)},
      {"step_time_min", of_time(&statistics::Estimate::minimum)},
      {"step_time_max", of_time(&statistics::Estimate::maximum)},
      {"steps", std::to_string(time ? time->samples : 0)},
      {"throughput", number_cell(point.throughput)},
      {"throughput_unit", text_cell(point.data->throughput_unit)},
      {"speedup", number_cell(point.speedup)},
      {"efficiency", number_cell(point.efficiency)},
      {"flop_per_step", number_cell(point.flop_per_step)},
      {"flops_per_rank", number_cell(point.flops_per_rank)},
      {"mfu", number_cell(point.mfu)},
      {"memory_per_rank", number_cell(point.memory_per_rank)},
      {"device_memory_per_rank", number_cell(point.device_memory_per_rank)},
      {"host_memory_per_rank", number_cell(point.host_memory_per_rank)},
      {"samples_per_second", number_cell(point.samples_per_second)},
      {"energy_per_step", number_cell(point.devices.energy.joules_per_step)},
      {"traced_step", number_cell(point.traced_step)},
  };
  for (const Category& category : categories()) {
    cells.emplace_back(category.name, mean ? number_cell(*mean.*category.seconds) : "");
  }
  cells.emplace_back("hidden_communication", mean ? number_cell(mean->hidden_communication) : "");
  cells.emplace_back("communication_ratio", number_cell(point.communication_ratio));
  cells.emplace_back("instrumentation_overhead",
                     number_cell(value_of(point.instrumentation_overhead)));
  return cells;
}

/// Returns the cells of a micro-benchmark's row; all are empty for the points of curves.
std::vector<CsvCell> of_row(const RowReport& row) {
  const results::RowData none;
  const bool is_row = row.data != nullptr;
  const results::RowData& data = is_row ? *row.data : none;
  std::vector<CsvCell> cells{
      {"row_status", is_row ? std::string{results::name(data.status)} : ""},
      {"row_reason", text_cell(data.reason)},
      {"row_dtype", text_cell(text_of(data, "dtype"))},
  };
  for (const char* key : {"op", "reduction", "in_place", "implementation", "axis", "groups",
                          "algorithm", "protocol", "registration", "class", "cache", "origin",
                          "kind", "together", "part", "collective", "pair"}) {
    cells.emplace_back(key, text_cell(text_of(data, key)));
  }
  for (const char* key : {"bytes", "count", "root", "members", "m", "n", "k", "batch", "flop",
                          "src", "dst", "numa", "estimate"}) {
    cells.emplace_back(key, number_cell(number_of(data, key)));
  }
  const auto& time = row.time;
  const auto of_time = [&time](double statistics::Estimate::*member) {
    return time ? number_cell(*time.*member) : "";
  };
  const std::vector<CsvCell> measured{
      {"plays", time ? std::to_string(time->samples) : ""},
      {"calls", is_row ? std::to_string(data.calls) : ""},
      {"time_median", of_time(&statistics::Estimate::median)},
      {"time_lower", number_cell(time ? time->lower : std::nullopt)},
      {"time_upper", number_cell(time ? time->upper : std::nullopt)},
      {"time_min", of_time(&statistics::Estimate::minimum)},
      {"time_max", of_time(&statistics::Estimate::maximum)},
      {"time_p99", number_cell(row.p99 ? std::optional{row.p99->value} : std::nullopt)},
      {"algbw", number_cell(row.algbw)},
      {"busbw", number_cell(row.busbw)},
      {"flops", number_cell(row.flops)},
      {"bandwidth", number_cell(row.bandwidth)},
      {"wrong", data.wrong ? std::to_string(*data.wrong) : ""},
  };
  cells.insert(cells.end(), measured.begin(), measured.end());
  return cells;
}

/// Returns the cells on the nodes of the point's ranks, and on the joined point that it is part of.
std::vector<CsvCell> over_all(const Joined& joined, const PointReport& point) {
  const JoinedPlace place = place_of(joined, point).value_or(JoinedPlace{});
  const PointReport none;
  const PointReport& at = place.joined == nullptr ? none : *place.joined;
  const auto& time = at.step_time;
  const auto& use = point.nodes;
  return {
      {"ranks_per_node_fewest", use ? std::to_string(use->fewest) : ""},
      {"ranks_per_node_most", use ? std::to_string(use->most) : ""},
      {"axes", text_cell(axes_text(point))},
      {"curve", place.curve == nullptr ? "" : place.curve->fingerprint},
      {"launches", place.joined == nullptr ? "" : std::to_string(place.launches)},
      {"joined_step_time", number_cell(time ? std::optional{time->median} : std::nullopt)},
      {"joined_step_time_lower", number_cell(time ? time->lower : std::nullopt)},
      {"joined_step_time_upper", number_cell(time ? time->upper : std::nullopt)},
      {"joined_spread", number_cell(spread_of(at))},
      {"joined_throughput", number_cell(at.throughput)},
      {"joined_speedup", number_cell(at.speedup)},
      {"joined_efficiency", number_cell(at.efficiency)},
      {"left_out", text_cell(place.left_out)},
  };
}

/// Returns the cells on the growth of the model's work, and on the MPI ranks of a row between two
/// ranks.
std::vector<CsvCell> grown_and_ranks(const PointReport& point, const results::RowData* row) {
  std::vector<CsvCell> cells{{"work_growth", number_cell(point.work_growth)}};
  const auto add = [&](std::string_view column, const char* key) {
    const auto rank = row == nullptr ? std::nullopt : number_of(*row, key);
    cells.emplace_back(
        column, rank ? std::to_string(world_rank(*point.data, static_cast<int>(*rank))) : "");
  };
  add("src_world_rank", "src");
  add("dst_world_rank", "dst");
  return cells;
}

/// The run and the joined curves that rows refer to.
struct Whole {
  const Joined& joined;
  const RunReport& report;
  std::vector<Inference> inferences;
};

std::vector<CsvCell> cells_of(const Whole& whole, const PointReport& point, const RowReport& row) {
  std::vector<CsvCell> cells = what_ran(whole.report, point);
  for (CsvCell& cell : what_came_out(point)) cells.push_back(std::move(cell));
  for (CsvCell& cell : of_row(row)) cells.push_back(std::move(cell));
  for (CsvCell& cell : over_all(whole.joined, point)) cells.push_back(std::move(cell));
  for (CsvCell& cell : inference_cells(whole.inferences, row.data)) {
    cells.push_back(std::move(cell));
  }
  for (CsvCell& cell : serve_cells(row.data)) cells.push_back(std::move(cell));
  for (CsvCell& cell : grown_and_ranks(point, row.data)) cells.push_back(std::move(cell));
  return cells;
}

std::string value_line(const Whole& whole, const PointReport& point, const RowReport& row) {
  return csv_values(cells_of(whole, point, row));
}

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

std::string render_csv(const Report& whole) {
  // The heading comes from a point without values, so that it is present even without points.
  const results::RunData no_run;
  const results::PointData no_data;
  const RunReport nothing{.data = &no_run};
  const Joined no_joined;
  PointReport no_point;
  no_point.data = &no_data;
  std::string text = csv_heading(cells_of({no_joined, nothing, {}}, no_point, {}));
  for (const RunReport& report : whole.runs) {
    const Whole of_run{whole.joined, report, inferences_of(report)};
    for (const Curve& curve : report.curves) {
      for (const PointReport& point : curve.points) {
        text += value_line(of_run, point, {});
      }
    }
    for (const PointReport& point : report.benches) {
      for (const RowReport& row : point.bench->rows) text += value_line(of_run, point, row);
      if (point.bench->rows.empty()) text += value_line(of_run, point, {});
    }
  }
  return text;
}

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
