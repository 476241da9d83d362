// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/run_hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "results/field_visitors.hpp"
#include "results/layout.hpp"
#include "results/point_tables.hpp"
#include "results/run_data.hpp"

namespace isoscale::results {

namespace {

constexpr std::uint64_t room_for_structure =
    std::uint64_t{256} * 1024;  ///< bytes; groups, names, attributes

/// Returns the bytes of text columns, in which all texts have the length of the longest.
std::uint64_t room_for_texts(const PointData& point) {
  constexpr std::uint64_t numbers_row = 24;
  std::size_t shape = 0, algorithm = 0, name = 0;
  for (const GemmChoice& choice : point.gemm_choices) {
    shape = std::max(shape, choice.shape.size());
    algorithm = std::max(algorithm, choice.algorithm.size());
  }
  for (const CommunicatorTime& time : point.communicators) name = std::max(name, time.name.size());
  return point.gemm_choices.size() * (numbers_row + shape + algorithm) +
         point.communicators.size() * (numbers_row + name);
}

/// Writes one dataset per key over all ranks: "" and NaN where a rank does not have the fact.
void put_rank_facts(hdf5::Group& root, const std::vector<RankFacts>& facts) {
  hdf5::Group group = root.create_group("ranks");
  PutFields put{group};
  std::vector<std::int32_t> rank, node;
  std::vector<std::string> host;
  std::set<std::string> text_keys, number_keys;
  for (const RankFacts& fact : facts) {
    rank.push_back(fact.rank);
    node.push_back(fact.node);
    host.push_back(fact.host);
    for (const auto& [key, value] : fact.text) text_keys.insert(key);
    for (const auto& [key, value] : fact.number) number_keys.insert(key);
  }
  put.column("rank", rank, {"1", "rank in the launch"});
  put.column("node", node, {"1", "number of the node the rank is on"});
  put.column("host", host, {"text", "name of that node"});
  hdf5::Group text = group.create_group("text");
  for (const std::string& key : text_keys) {
    std::vector<std::string> column;
    for (const RankFacts& fact : facts) {
      const auto found = fact.text.find(key);
      column.push_back(found == fact.text.end() ? "" : found->second);
    }
    PutFields{text}.column(key, column, {"text", "fact of each rank; empty = not known"});
  }
  hdf5::Group number = group.create_group("number");
  for (const std::string& key : number_keys) {
    std::vector<double> column;
    for (const RankFacts& fact : facts) {
      const auto found = fact.number.find(key);
      column.push_back(found == fact.number.end() ? std::numeric_limits<double>::quiet_NaN()
                                                  : found->second);
    }
    PutFields{number}.column(key, column,
                             {unit_of_fact(key), "fact of each rank; NaN = not known"});
  }
}

void put_environment(hdf5::Group& root,
                     const std::vector<std::pair<std::string, std::string>>& environment) {
  hdf5::Group group = root.create_group("environment");
  std::vector<std::string> names, values;
  for (const auto& [name, value] : environment) {
    names.push_back(name);
    values.push_back(value);
  }
  PutFields put{group};
  put.column("name", names, {"text", "environment variables of rank 0 that were set"});
  put.column("value", values, {"text", "their values, in the same order"});
}

void put_rows(hdf5::Group& point, const RowTable& table) {
  hdf5::Group group = point.create_group("rows");
  PutFields put{group};
  visit_rows(put, table);
  hdf5::Group text = group.create_group("text");
  PutFields put_text{text};
  for (const auto& [key, column] : table.text) {
    put_text.column(key, column, {"text", "what was measured; empty = does not apply"});
  }
  hdf5::Group number = group.create_group("number");
  PutFields put_number{number};
  for (const auto& [key, column] : table.number) {
    put_number.column(key, column,
                      {unit_of_number(key), "size or place of what was measured; NaN = none"});
  }
}

void put_observed(hdf5::Group& point_group, const PointData& point) {
  hdf5::Group sum_group = point_group.create_group("op_sums");
  PutFields put_sums{sum_group};
  const OpSumTable sums = to_table(point.op_sums);
  visit_op_sums(put_sums, sums, point.ranks);
  hdf5::Group solo_group = point_group.create_group("solo_times");
  PutFields put_solo{solo_group};
  const SoloTable solo = to_table(point.solo_times);
  visit_solo_times(put_solo, solo);
  hdf5::Group series_group = point_group.create_group("device_series");
  PutFields put_series{series_group};
  const SeriesTable series = to_table(point.device_series);
  visit_device_series(put_series, series);
}

void require_count(std::size_t count, std::size_t wanted, const std::string& name) {
  if (count != wanted) throw base::Error("dataset '" + name + "' differs in length from its peers");
}

/// Reads the ranks with their nodes and hosts; other functions add the facts.
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

std::uint64_t room_for(const PointData& point, const PointTables& tables) {
  const OpTable& ops = tables.ops;
  const TraceTable& traces = tables.traces;
  // The bytes of one row over all columns, rounded up.
  constexpr std::uint64_t op_row = 48, wait_row = 8, transfer_row = 16, rank_row = 64;
  constexpr std::uint64_t shape_row = 16;
  constexpr std::uint64_t trace_row = 48, span_row = 24;
  std::uint64_t bytes = room_for_structure + ops.kind.size() * op_row +
                        ops.wait_ops.size() * wait_row + ops.transfer_bytes.size() * transfer_row +
                        ops.gemm_m.size() * shape_row + traces.rank.size() * trace_row +
                        traces.span_op.size() * span_row +
                        static_cast<std::uint64_t>(point.ranks) * rank_row + point.reason.size() +
                        point.verification.size();
  bytes += room_for_texts(point) + room_for(tables.rows) + room_for_observed(point);
  for (const auto& times : point.step_times) bytes += times.size() * sizeof(double) + 2;
  return bytes;
}

void put_marks(hdf5::Group& root, std::string_view format) {
  root.set("format", format);
  root.set("schema_version", fmt::format("{}.{}", schema_major, schema_minor));
}

void put_header(hdf5::Group& root, const RunData& run) {
  PutFields put{root};
  visit_run(put, run);
  root.set("ended", "");
  root.set("status", "partial");
  put_rank_facts(root, run.rank_facts);
  put_environment(root, run.environment);
  if (run.preflight) {
    hdf5::Group group = root.create_group("preflight");
    put_preflight(group, *run.preflight);
  }
  root.create_group("points");
}

void put_end(hdf5::Group& root, const RunData& run) {
  root.set("ended", run.ended);
  root.set("status", run.complete ? "complete" : "partial");
  root.remove("warnings");
  PutFields{root}.column("warnings", run.warnings, warnings_about);
  if (root.has("calibration")) root.remove("calibration");
  if (!run.calibration) return;
  hdf5::Group group = root.create_group("calibration");
  put_calibration(group, *run.calibration);
}

void put_point(hdf5::Group& points, const PointData& point, const PointTables& tables) {
  hdf5::Group group = points.create_group(point_group_name(point.index));
  PutFields put{group};
  visit_point(put, point);
  hdf5::Group op_group = group.create_group("ops");
  PutFields put_ops{op_group};
  visit_ops(put_ops, tables.ops);
  hdf5::Group trace_group = group.create_group("traces");
  PutFields put_traces{trace_group};
  visit_traces(put_traces, tables.traces);
  hdf5::Group gemm_group = group.create_group("gemm_choices");
  PutFields put_gemms{gemm_group};
  const GemmTable gemms = to_table(point.gemm_choices);
  visit_gemm_choices(put_gemms, gemms);
  hdf5::Group communicator_group = group.create_group("communicators");
  PutFields put_communicators{communicator_group};
  const CommunicatorTable communicators = to_table(point.communicators);
  visit_communicators(put_communicators, communicators);
  put_rows(group, tables.rows);
  put_observed(group, point);
}

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
    // get_rows() checks their ranks
    point.rows = get_rows(group.open_group("rows"), minor, point.ranks);
    validate_rows(point);
  }
  if (minor >= 3) {
    get_observed(group, minor, point);
    validate_observed(point);
  }
  return point;
}

}  // namespace isoscale::results
