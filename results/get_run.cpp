// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/get_run.hpp"

#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "results/calibration_table.hpp"
#include "results/choices.hpp"
#include "results/get_fields.hpp"
#include "results/layout.hpp"
#include "results/preflight_table.hpp"
#include "results/row_table.hpp"
#include "results/validate.hpp"

namespace isoscale::results {
namespace {

void require_count(std::size_t count, std::size_t wanted, const std::string& name) {
  if (count != wanted) throw base::Error("dataset '" + name + "' differs in length from its peers");
}

/// Who is where; the facts are for others to fill in.
std::vector<RankFacts> get_ranks(const hdf5::Group& group) {
  const auto ranks = group.read<std::int32_t>("rank");
  const auto nodes = group.read<std::int32_t>("node");
  const auto hosts = group.read_texts("host");
  require_count(nodes.size(), ranks.size(), "node");
  require_count(hosts.size(), ranks.size(), "host");
  std::vector<RankFacts> facts(ranks.size());
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    facts[at].rank = ranks[at];
    facts[at].node = nodes[at];
    facts[at].host = hosts[at];
  }
  return facts;
}

void get_text_fact(const hdf5::Group& texts, const std::string& key, std::span<RankFacts> facts) {
  const auto column = texts.read_texts(key);
  require_count(column.size(), facts.size(), key);
  for (std::size_t at = 0; at < facts.size(); ++at) {
    if (!column[at].empty()) facts[at].text[key] = column[at];
  }
}

void get_number_fact(const hdf5::Group& numbers, const std::string& key,
                     std::span<RankFacts> facts) {
  const auto column = numbers.read<double>(key);
  require_count(column.size(), facts.size(), key);
  for (std::size_t at = 0; at < facts.size(); ++at) {
    if (!std::isnan(column[at])) facts[at].number[key] = column[at];
  }
}

std::vector<RankFacts> get_rank_facts(const hdf5::Group& root) {
  const hdf5::Group group = root.open_group("ranks");
  std::vector<RankFacts> facts = get_ranks(group);
  const hdf5::Group text = group.open_group("text");
  for (const std::string& key : text.names()) get_text_fact(text, key, facts);
  const hdf5::Group number = group.open_group("number");
  for (const std::string& key : number.names()) get_number_fact(number, key, facts);
  return facts;
}

std::vector<RankFacts> get_rank_summary(const hdf5::Group& root) {
  const hdf5::Group group = root.open_group("ranks");
  std::vector<RankFacts> facts = get_ranks(group);
  const hdf5::Group text = group.open_group("text");
  for (const char* const key : {"cpu_model", "gpu_name"}) {
    if (text.has(key)) get_text_fact(text, key, facts);
  }
  const hdf5::Group number = group.open_group("number");
  if (number.has("cores")) get_number_fact(number, "cores", facts);
  return facts;
}

void get_status(const hdf5::Group& root, RunData& run) {
  const std::string status = root.text("status");
  if (status != "complete" && status != "partial") {
    throw base::Error("attribute 'status' has the unknown value '" + status + "'");
  }
  run.complete = status == "complete";
  if (run.ranks < 1 || run.nodes < 1) throw base::Error("the run has no ranks or nodes");
}

std::vector<std::pair<std::string, std::string>> get_environment(const hdf5::Group& root) {
  const hdf5::Group group = root.open_group("environment");
  const auto names = group.read_texts("name");
  const auto values = group.read_texts("value");
  require_count(values.size(), names.size(), "value");
  std::vector<std::pair<std::string, std::string>> environment;
  for (std::size_t at = 0; at < names.size(); ++at) environment.emplace_back(names[at], values[at]);
  return environment;
}

void get_choices(const hdf5::Group& group, int minor, PointData& point) {
  if (minor < 1) return;
  GemmTable gemms;
  const hdf5::Group gemm_group = group.open_group("gemm_choices");
  GetFields get_gemms{gemm_group, minor};
  visit_gemm_choices(get_gemms, gemms);
  point.gemm_choices = to_choices(gemms);
  CommunicatorTable communicators;
  const hdf5::Group communicator_group = group.open_group("communicators");
  GetFields get_communicators{communicator_group, minor};
  visit_communicators(get_communicators, communicators);
  point.communicators = to_communicators(communicators);
}

std::vector<RowData> get_rows(const hdf5::Group& group, int minor, int ranks) {
  RowTable table;
  GetFields get{group, minor};
  visit_rows(get, table);
  const hdf5::Group text = group.open_group("text");
  for (const std::string& key : text.names()) table.text[key] = text.read_texts(key);
  const hdf5::Group number = group.open_group("number");
  for (const std::string& key : number.names()) table.number[key] = number.read<double>(key);
  return to_rows(table, ranks);
}

void get_observed(const hdf5::Group& group, int minor, PointData& point) {
  OpSumTable sums;
  const hdf5::Group sum_group = group.open_group("op_sums");
  GetFields get_sums{sum_group, minor};
  visit_op_sums(get_sums, sums, point.ranks);
  point.op_sums = to_op_sums(sums);
  SoloTable solo;
  const hdf5::Group solo_group = group.open_group("solo_times");
  GetFields get_solo{solo_group, minor};
  visit_solo_times(get_solo, solo);
  point.solo_times = to_solo_times(solo);
  SeriesTable series;
  const hdf5::Group series_group = group.open_group("device_series");
  GetFields get_series{series_group, minor};
  visit_device_series(get_series, series);
  point.device_series = to_device_series(series);
}

}  // namespace

RunData get_header(const hdf5::Group& root, int minor) {
  RunData run;
  GetFields get{root, minor};
  visit_run(get, run);
  get_status(root, run);
  run.rank_facts = get_rank_facts(root);
  run.environment = get_environment(root);
  if (minor >= 4 && root.has("preflight")) {
    run.preflight = get_preflight(root.open_group("preflight"), minor);
  }
  if (minor >= 2 && root.has("calibration")) {
    run.calibration = get_calibration(root.open_group("calibration"), minor);
  }
  return run;
}

RunData get_header_summary(const hdf5::Group& root, int minor) {
  RunData run;
  GetFields get{root, minor};
  visit_run_identity(get, run);
  get_status(root, run);
  run.rank_facts = get_rank_summary(root);
  return run;
}

PointData get_point_summary(const hdf5::Group& group, int minor) {
  PointData point;
  GetFields get{group, minor};
  visit_point_summary(get, point);
  validate(point);
  return point;
}

PointData get_point(const hdf5::Group& group, int minor) {
  PointData point;
  GetFields get{group, minor};
  visit_point(get, point);
  OpTable ops;
  const hdf5::Group op_group = group.open_group("ops");
  GetFields get_ops{op_group, minor};
  visit_ops(get_ops, ops);
  point.outline = to_outlines(ops, point.mesh);
  TraceTable traces;
  const hdf5::Group trace_group = group.open_group("traces");
  GetFields get_traces{trace_group, minor};
  visit_traces(get_traces, traces);
  point.traces = to_timelines(traces);
  get_choices(group, minor, point);
  validate(point);
  if (minor >= 2) {
    point.rows = get_rows(group.open_group("rows"), minor, point.ranks);  // by its checked ranks
    validate_rows(point);
  }
  if (minor >= 3) {
    get_observed(group, minor, point);
    validate_observed(point);
  }
  return point;
}

}  // namespace isoscale::results
