// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/predict_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/microbench/microbench_report.hpp"
#include "analysis/predict/forecast.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "simulate/op_time.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

namespace collectives = workloads::collectives;
using Json = nlohmann::ordered_json;
using simulate::GroupPlace;

/// Throws base::UsageError for options of predict that have no meaning for collectives.
void refuse_others(const settings::PredictCommand& command) {
  const std::array<std::pair<std::string_view, bool>, 9> given{
      {{"--model", command.model.has_value()},
       {"--scaling", command.scaling.has_value()},
       {"--best", command.best},
       {"--each-rank", command.each_rank},
       {"--baseline", command.baseline.has_value()},
       {"--html", !command.html.empty()},
       {"--network", !command.network.empty()},
       {"--software", !command.software.empty()},
       {"--no-noise", command.no_noise}}};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    throw base::usage_error(
        "{} has no meaning for --workload collectives, which prints the times of a sheet's network",
        option);
  }
}

/// Returns the changes that all `settings` together make to the machine. Throws base::UsageError
/// for a part that no collective depends on, and for a part that is given twice.
WhatIf what_if_of(const std::vector<std::string>& settings) {
  if (settings.empty()) return {};
  WhatIf what_if = parse_what_if(fmt::format("{}", fmt::join(settings, ",")));
  for (const Change& change : what_if.changes) {
    const std::string_view name = change.part->name;
    if (name.starts_with("link.") || name == "latency") continue;
    throw base::usage_error(
        "--set {}: no collective depends on it; change link.inter, link.intra or latency", name);
  }
  return what_if;
}

/// Applies the values of --set, and returns the title of the what-if ("" if there is none). Keys
/// that name a part of the machine change `sheet`; other keys are options of the workload, and are
/// stored in `options`. Throws base::UsageError for values that are not allowed, for keys that are
/// given twice, and for options that the prediction determines itself.
std::string apply(const settings::PredictCommand& command, const workloads::Workload& workload,
                  simulate::Machine& sheet, workloads::Options& options) {
  std::vector<std::string> changes;
  for (const auto& [key, value] : command.settings) {
    if (machine_part(key) != nullptr) {
      changes.push_back(fmt::format("{}={}", key, value));
    } else if (key == "in_place" || key == "implementation" || key == "rotate") {
      throw base::usage_error(
          "--set {}: predicted are calls of the library out of place, wherever the data lies", key);
    } else if (!options.emplace(key, value).second) {
      throw base::usage_error("--set: {} is given twice; give it once", base::quoted(key));
    }
  }
  workloads::validate(workload.name, workload.options, options);
  options.insert_or_assign("in_place", "no");
  const WhatIf what_if = what_if_of(changes);
  sheet = changed(sheet, what_if);
  return what_if.title;
}

/// Returns the time of a collective in the group whose placement on nodes makes it slowest.
simulate::CollectiveEstimate slowest(const simulate::Network& network,
                                     const collectives::CollectiveCase& one,
                                     const std::vector<GroupPlace>& of_ranks) {
  // Only the operation sendrecv is not a kind of op: its ranks send each other messages.
  const std::optional<program::OpKind> kind = program::op_kind_of(collectives::name(one.operation));
  const auto bytes = static_cast<double>(one.bytes);
  simulate::CollectiveEstimate most;
  for (GroupPlace place : std::set<GroupPlace>{of_ranks.begin(), of_ranks.end()}) {
    if (one.groups == collectives::Groups::one) place.sharing = 1;
    const simulate::CollectiveEstimate time =
        kind ? simulate::network_collective(network, *kind, bytes, place)
             : simulate::CollectiveEstimate{.seconds =
                                                simulate::network_message(network, bytes, place)};
    if (time.seconds > most.seconds) most = time;
  }
  return most;
}

CollectiveTime time_of(const simulate::Network& network, const collectives::CollectiveCase& one,
                       const collectives::Setting& setting, simulate::Places& places) {
  const bool is_barrier = one.operation == collectives::Operation::barrier;
  const bool is_exchange = one.operation == collectives::Operation::sendrecv;
  const simulate::CollectiveEstimate time =
      slowest(network, one,
              is_exchange ? places.of_messages(setting.axis, 1) : places.of_groups(setting.axis));
  CollectiveTime row{
      .members = setting.members,
      .groups = one.groups == collectives::Groups::one ? "one" : "all",
      .op = std::string{collectives::name(one.operation)},
      .dtype = std::string{program::name(one.type)},
      .root = collectives::row_of(one.operation).has_root ? setting.options.root : -1,
      .bytes = static_cast<double>(one.bytes),
      .count = static_cast<double>(one.count),
      .seconds = time.seconds};
  constexpr std::array<std::string_view, 3> reductions{"sum", "min", "max"};
  if (one.reduction) row.reduction = reductions.at(static_cast<std::size_t>(*one.reduction));
  if (time.algorithm) row.algorithm = simulate::name(*time.algorithm);
  if (time.protocol != nullptr) row.protocol = time.protocol->name;
  if (!is_barrier && time.seconds > 0) {
    row.algbw = row.bytes / time.seconds;
    row.busbw = *row.algbw * microbench::bus_factor(row.op, setting.members).value_or(1);
  }
  return row;
}

Json row_json(const CollectiveTime& row) {
  return {{"ranks", row.ranks},
          {"nodes", row.nodes},
          {"members", row.members},
          {"groups", row.groups},
          {"op", row.op},
          {"dtype", row.dtype},
          {"reduction", render::text_or_null(row.reduction)},
          {"root", row.root},
          {"bytes", render::count_or_null(row.bytes)},
          {"count", render::count_or_null(row.count)},
          {"time", row.seconds},
          {"algbw", render::number_or_null(row.algbw)},
          {"busbw", render::number_or_null(row.busbw)},
          {"algorithm", render::text_or_null(row.algorithm)},
          {"protocol", render::text_or_null(row.protocol)}};
}

constexpr std::string_view line_format =
    "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>9}  {:>7}  {:>7}{}{}\n";

std::string table_heading(const CollectiveTime& row) {
  return fmt::format("#\n# {}, {} on {}, {} of {}\n#\n", row.op, base::counted(row.ranks, "rank"),
                     base::counted(row.nodes, "node"), row.groups == "one" ? "one group" : "groups",
                     row.members) +
         fmt::format(fmt::runtime(line_format), "#       size", "count", "type", "redop", "root",
                     "time", "algbw", "busbw", "  algorithm", "") +
         fmt::format(fmt::runtime(line_format), "#        (B)", "(elements)", "", "", "", "(us)",
                     "(GB/s)", "(GB/s)", "", "");
}

std::string table_line(const CollectiveTime& row) {
  const auto rate = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value * 1e-9) : "N/A";
  };
  return fmt::format(fmt::runtime(line_format), fmt::format("{:.0f}", row.bytes),
                     fmt::format("{:.0f}", row.count), render::nccl_type_name(row.dtype),
                     row.reduction.empty() ? "none" : row.reduction, row.root,
                     fmt::format("{:.2f}", row.seconds * 1e6), rate(row.algbw), rate(row.busbw),
                     row.algorithm.empty() ? "" : "  " + row.algorithm,
                     row.protocol.empty() ? "" : "/" + row.protocol);
}

}  // namespace

CollectiveTimes collective_times(const settings::PredictCommand& command, simulate::Machine sheet) {
  refuse_others(command);
  const workloads::Workload& workload = workloads::find_workload("collectives");
  workloads::Request base;
  base.precision = command.precision.value_or(program::Precision::bf16);
  const std::string what_if = apply(command, workload, sheet, base.options);
  simulate::Network& network = *sheet.network;
  if (command.node_ranks) network.node_ranks = *command.node_ranks;
  CollectiveTimes result{.source = command.source.string(),
                         .machine = sheet.name,
                         .what_if = what_if,
                         .node_ranks = network.node_ranks};
  for (const int ranks : command.ranks) {
    const workloads::Request request =
        workloads::fit(workload, base, command.mesh, ranks, workloads::Scaling::strong);
    const collectives::Setting setting = collectives::setting_of(request);
    const simulate::Layout layout = simulate::packed(ranks, network.node_ranks);
    simulate::Places places{request.mesh, layout};
    for (const collectives::CollectiveCase& one : collectives::cases_of(request, setting)) {
      result.rows.push_back(time_of(network, one, setting, places));
      result.rows.back().ranks = ranks;
      result.rows.back().nodes = nodes_of(ranks, network.node_ranks);
    }
  }
  return result;
}

std::string render_text(const CollectiveTimes& times) {
  std::string text =
      fmt::format("# {} ({}){}, {} ranks on a node: predicted, not measured\n",
                  render::escape(times.source), render::escape(times.machine),
                  times.what_if.empty() ? "" : " if " + times.what_if, times.node_ranks);
  const CollectiveTime* last = nullptr;
  for (const CollectiveTime& row : times.rows) {
    if (last == nullptr || last->ranks != row.ranks || last->op != row.op ||
        last->groups != row.groups) {
      text += table_heading(row);
    }
    text += table_line(row);
    last = &row;
  }
  return text;
}

std::string render_json(const CollectiveTimes& times) {
  return render::dumped({{"schema_version", "1.0"},
                         {"source", times.source},
                         {"machine", times.machine},
                         {"what_if", render::text_or_null(times.what_if)},
                         {"workload", "collectives"},
                         {"node_ranks", times.node_ranks},
                         {"rows", render::list_json(times.rows, row_json)}});
}

std::string render_csv(const CollectiveTimes& times) {
  const Json row_keys = row_json({});  // each key is a column
  std::string columns;
  for (const auto& [key, value] : row_keys.items()) columns += key + " ";
  columns += "what_if";
  std::vector<render::CsvCell> names;
  render::add_csv_cells(names, Json::object(), columns);
  std::string text = render::csv_heading(names);
  for (const CollectiveTime& row : times.rows) {
    std::vector<render::CsvCell> cells;
    Json values = row_json(row);
    values["what_if"] = times.what_if;
    render::add_csv_cells(cells, values, columns);
    text += render::csv_values(cells);
  }
  return text;
}

}  // namespace isoscale::analysis::predict
