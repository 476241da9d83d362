// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/dry_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "runner/plan/launch_site.hpp"
#include "runner/plan/step_loop.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "runner/preflight_and_executor_choice.hpp"
#include "runner/run.hpp"
#include "units/quantity_text.hpp"
#include "workloads/hybrid/hybrid.hpp"

namespace isoscale::runner {

std::optional<std::string> beyond_host(const settings::RunConfig& config) {
  using program::Precision;
  for (const settings::Experiment& experiment : config.experiments) {
    const Precision precision = experiment.base.precision;
    if (precision == Precision::f64 || precision == Precision::f32) continue;
    return fmt::format("the host device does not compute in {}", program::name(precision));
  }
  return std::nullopt;
}

std::optional<std::string> beyond_host(const plan::Plan& plan, const plan::Site& site,
                                       units::Bytes memory) {
  for (const plan::PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) continue;
    std::map<int, std::uint64_t> ranks_of_node;
    for (const int rank : point.world_ranks) {
      ++ranks_of_node[site.node_of_rank[static_cast<std::size_t>(rank)]];
    }
    for (const auto& [node, ranks] : ranks_of_node) {
      const units::Bytes need{ranks * point.memory_per_rank->value()};
      if (need <= memory) continue;
      return fmt::format("point {} needs {} for {}, and this host has {} free", point.index + 1,
                         units::format(need), base::counted(static_cast<int>(ranks), "rank"),
                         units::format(memory));
    }
  }
  return std::nullopt;
}

plan::Site site_of(const PricedMachine& machine, const settings::RunConfig& config, int ranks) {
  const executor::Description gpus = unseen_gpus();
  plan::Site site{.ranks = config.ranks.empty() ? ranks : std::max(ranks, config.ranks.back()),
                  .node_of_rank = {},
                  .precisions = gpus.precisions,
                  .device = gpus.name,
                  .pool_of_rank = {},
                  .memory_free = {},
                  .half_precision_rate = machine.half_precision_rate};
  const int node_ranks = config.ranks_per_node.value_or(machine.node_ranks);
  for (int rank = 0; rank < site.ranks; ++rank) {
    site.node_of_rank.push_back(rank / node_ranks);
    site.pool_of_rank.push_back(rank);
  }
  site.memory_free.assign(site.pool_of_rank.size(), machine.memory);
  return site;
}

void price(const PricedMachine& machine, const settings::RunConfig& config, plan::Plan& plan) {
  const int node_ranks = config.ranks_per_node.value_or(machine.node_ranks);
  for (plan::PlannedPoint& point : plan.points) {
    if (point.workload->is_bench() || !point.skip_reason.empty()) continue;
    try {
      point.load.step = machine.step(*point.workload, point.request, node_ranks);
    } catch (const base::UsageError& error) {
      throw base::usage_error("--on {}: point {}, {} on {}: {}", machine.name, point.index + 1,
                              point.workload->name, base::counted(point.ranks, "rank"),
                              error.what());
    }
  }
}

namespace {

// Formats of a table row: its first columns, and those that follow if the point is not skipped.
constexpr std::string_view first_row = "{:>5}  {:<11} {:<10} {:>5} ";
constexpr std::string_view row = "{:>5} {:<16} {:>9} {:>9} {:>12} {:>11}  {}\n";

/// Returns a text with the bytes that are sent along each set of mesh axes, how far the axes reach,
/// and the part of the memory that is on the host: "dp 1.20 MiB, tp 3.00 MiB (dp inter-node)";
/// "nothing" if no bytes are sent.
std::string traffic_text(const plan::PlannedPoint& point) {
  std::vector<std::string> texts;
  for (const auto& [axes, sent] : point.sent_by_axes) {
    if (sent == units::Bytes{0}) continue;
    texts.push_back(fmt::format("{} {}", mesh::to_string(axes), units::format(sent)));
  }
  std::string text = texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
  if (!point.reach.empty()) text += fmt::format(" ({})", point.reach);
  const units::Bytes on_host = point.host_memory_per_rank;
  if (on_host > units::Bytes{0}) {
    text += fmt::format("; {} of its memory on the host", units::format(on_host));
  }
  return text;
}

std::string first_columns(const plan::PlannedPoint& point) {
  return fmt::format(first_row, point.index + 1, point.workload->name,
                     plan::uses_model(point) ? point.request.model.name : "-", point.ranks);
}

/// Formats the table row of a point with all columns. `loop` is the time of its measuring loop and
/// `time` that of the whole point, as texts; both are "-" if the point does not fit into memory.
std::string point_line(const plan::PlannedPoint& point, std::string_view loop,
                       std::string_view time, std::string_view remark) {
  return first_columns(point) +
         fmt::format(row, point.nodes ? fmt::format("{}", *point.nodes) : "?",
                     mesh::to_string(point.request.mesh), loop, time,
                     units::format(*point.memory_per_rank),
                     units::format(units::Flops{*point.flop_per_step}), remark);
}

std::string injection_text(const settings::Injection& injection, const plan::Plan& plan) {
  std::vector<int> touched;
  for (const plan::PlannedPoint& point : plan.points) {
    const bool is_put_in =
        std::ranges::find(point.injections, injection.text) != point.injections.end();
    if (is_put_in && point.skip_reason.empty()) touched.push_back(point.index + 1);
  }
  if (touched.empty()) return fmt::format("{} touches no point.\n", injection.text);
  return fmt::format("{} is injected into point {}.\n", injection.text, fmt::join(touched, ", "));
}

std::string budget_text(units::Seconds budget, std::size_t fitting, std::size_t left_out) {
  return fmt::format(
      "{} of {} fit into --budget {} by these estimates, with loops no longer than in the table; a "
      "run decides by how long its points really take.\n",
      fitting, base::counted(fitting + left_out, "point"), units::format(budget));
}

/// Prints the plan for the machine that the data sheet `sheet` describes. `why` says why this sheet
/// is assumed; "" if the user named it.
void dry_run_on(const std::string& sheet, const std::string& why, const settings::RunConfig& asked,
                int ranks, const Services& services) {
  const PricedMachine machine = services.priced_machine(sheet);
  const plan::Site site = site_of(machine, asked, ranks);
  const auto [config, gpu_work] = plan::with_gpu_work(asked, site);
  const std::string assumption = fmt::format(
      "{}: {} is assumed; name another machine with --on (isoscale list systems), or give "
      "--device host",
      why, sheet);
  plan::Plan plan;
  try {
    plan = plan::make_plan(config, site);
    price(machine, config, plan);
  } catch (const base::UsageError& error) {
    if (why.empty()) throw;
    throw base::UsageError(fmt::format("{} ({})", error.what(), assumption), error.where());
  }
  const std::string text =
      (why.empty() ? "" : assumption + ".\n") +
      fmt::format(
          "Times are for {} ({} a node, {} a rank): steps as isoscale predict has them, "
          "micro-benchmarks "
          "at usual rates.\n",
          machine.name, base::counted(config.ranks_per_node.value_or(machine.node_ranks), "rank"),
          machine.memory ? units::format(*machine.memory) : "unknown memory");
  services.print(text + gpu_work + describe(plan, config, site.device));
}

/// Prints the plan for the ranks that were started, or for more ranks if --ranks asks for them. If
/// the ranks have no GPUs, the host device could not run the whole plan, and the user named no
/// device, the plan is printed for another machine instead, the one that the data sheet
/// `assumed_sheet` describes.
void dry_run_here(const settings::RunConfig& asked, const plan::Site& here, int started,
                  const Services& services) {
  const plan::Site site = plan::planned_site(here, asked);
  const auto [config, gpu_work] = plan::with_gpu_work(asked, site);
  const bool may_assume = here.device == "host" && config.device == settings::Device::automatic;
  if (may_assume) {
    std::optional<std::string> why = beyond_host(asked);
    if (!why) {
      plan::Site boundless = site;
      boundless.memory_free.clear();
      const std::optional<units::Bytes> free = here.memory_free.front();
      if (free) why = beyond_host(plan::make_plan(asked, boundless), site, *free);
    }
    if (why) return dry_run_on(std::string{assumed_sheet}, *why, asked, started, services);
  }
  std::string text = fmt::format(
      "Times are for the {} device at usual rates; --on prices another machine (isoscale list "
      "systems).\n",
      site.device);
  text += gpu_work + describe(plan::make_plan(config, site), config, site.device);
  if (site.nodes == plan::Nodes::unknown) {
    text += fmt::format(
        "{} of {} ranks were started, so it is unknown which ranks share a node (?); give "
        "--ranks-per-node, or start all of them.\n",
        started, site.ranks);
  }
  const bool is_known =
      std::ranges::any_of(site.memory_free, [](const auto& bytes) { return bytes.has_value(); });
  if (!is_known) {
    text += "The memory of the device is unknown: whether points fit was not checked.\n";
  } else if (site.memory_of == plan::MemoryOf::this_machine) {
    text += "Points are checked against the memory of this machine.\n";
  }
  services.print(text);
}

}  // namespace

std::string describe(const plan::Plan& plan, const settings::RunConfig& config,
                     std::string_view device) {
  std::string text = fmt::format(first_row, "point", "workload", "model", "ranks") +
                     fmt::format(row, "nodes", "mesh", "loop", "time", "memory/rank", "FLOP/step",
                                 "sent/step by axis, and how far the axis reaches");
  const std::map<int, units::Seconds> loops = plan::expected_loops(plan, config, device);
  units::Seconds all{0}, to_measure{0};
  std::size_t fitting = 0, left_out = 0;
  for (const plan::PlannedPoint& point : plan.points) {
    const auto loop = loops.find(point.index);
    if (!point.misfit.empty()) {
      text += point_line(point, "-", "-", "does not fit: " + point.misfit);
    } else if (!point.skip_reason.empty()) {
      text += first_columns(point) + "skipped: " + point.skip_reason + "\n";
    } else if (loop == loops.end()) {
      ++left_out;
      text += first_columns(point) + "left out: does not fit into the budget\n";
    } else {
      ++fitting;
      const plan::PointTime time = plan::estimate(point, config, device);
      const units::Seconds whole = plan::total(time, loop->second);
      to_measure += time.stretch * loop->second + time.after;
      all += whole;
      text +=
          point_line(point, units::format(loop->second), units::format(whole), traffic_text(point));
      const std::string note = workloads::hybrid::expert_note(point.request);
      if (!note.empty()) text += fmt::format("{:>5}  {}\n", "", note);
    }
  }
  for (const plan::PlannedPoint& point : plan.points) {
    if (!point.misfit.empty() && !point.skip_reason.empty()) {
      text += fmt::format("Point {} is skipped: {}.\n", point.index + 1, point.skip_reason);
    }
    if (!loops.contains(point.index)) continue;
    for (const std::string& note : point.notes) {
      text += fmt::format("Point {}: {}.\n", point.index + 1, note);
    }
  }
  for (const std::string& sentence : plan::idle_options(plan)) text += sentence + ".\n";
  const std::string of_budget =
      config.budget && fitting + left_out > 0 ? budget_text(*config.budget, fitting, left_out) : "";
  if (fitting == 0) return text + "Nothing would run: no point fits.\n" + of_budget;
  text += fmt::format(
      "About {} in all: {} to measure, more where steps scatter by more than {}, and {} for set-up "
      "and verification, which is a guess. A point's loop aims at {}; it lasts up to {:g} times as "
      "long where fewer than {} steps count.\n",
      units::format(all), units::format(to_measure), units::format_percent(plan::assumed_scatter),
      units::format(all - to_measure), units::format(config.max_time), plan::longest_overtime,
      plan::least_counted);
  const bool is_by_speed = std::ranges::any_of(plan.points, [](const plan::PlannedPoint& point) {
    return point.skip_reason.empty() && microbench::partitions_by_speed(point.request);
  });
  if (is_by_speed) {
    text +=
        "partition=proportional is planned as equal parts: speeds are measured just before a "
        "point.\n";
  }
  text += of_budget;
  for (const settings::Injection& injection : config.injections) {
    text += injection_text(injection, plan);
  }
  return text;
}

void dry_run(const settings::RunConfig& config, const comm::Communicator& world,
             const Services& services) {
  if (!config.on.empty()) {
    on_root(world, [&] { dry_run_on(config.on, "", config, world.size(), services); });
    return;
  }
  const executor::Description device = planned_device(config, world);
  const plan::Site here = plan::make_site(world, device, plan::gather_facts(world));
  on_root(world, [&] { dry_run_here(config, here, world.size(), services); });
}

}  // namespace isoscale::runner
