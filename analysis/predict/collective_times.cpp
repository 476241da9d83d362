// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/collective_times.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/microbench/bench.hpp"
#include "analysis/predict/forecast.hpp"
#include "analysis/predict/question.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "simulate/op_time.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/fit.hpp"
#include "workloads/registry.hpp"

namespace isoscale::analysis::predict {
namespace {

namespace collectives = workloads::collectives;
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

/// Returns the changes of the machine, which are those of all settings together. Throws
/// base::UsageError for a part that no collective depends on, and for a part that is given twice.
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
  const std::string_view op = collectives::name(one.operation);
  simulate::CollectiveEstimate most;
  for (GroupPlace place : std::set<GroupPlace>{of_ranks.begin(), of_ranks.end()}) {
    if (one.groups == collectives::Groups::one) place.sharing = 1;
    simulate::CollectiveEstimate time;
    if (one.operation == collectives::Operation::sendrecv) {
      time.seconds = simulate::network_message(network, static_cast<double>(one.bytes), place);
    } else {
      const auto kind = std::ranges::find(program::op_kind_names, op);
      time = simulate::network_collective(
          network, static_cast<program::OpKind>(kind - program::op_kind_names.begin()),
          static_cast<double>(one.bytes), place);
    }
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

}  // namespace isoscale::analysis::predict
