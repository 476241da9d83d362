// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "units/text.hpp"

/// Whether GPUs are like other GPUs, and nodes like other nodes.
namespace isoscale::system {
namespace {

using GpuText = std::optional<std::string> (*)(const CheckedGpu& gpu);

std::optional<std::string> prefixed(const std::optional<double>& value, std::string_view unit) {
  return value ? std::optional{units::format_prefixed(*value, unit)} : std::nullopt;
}

std::optional<std::string> bytes(const std::optional<double>& value) {
  if (!value || *value < 0) return std::nullopt;
  return units::format(units::Bytes{static_cast<std::uint64_t>(*value)});
}

/// Compares GPUs of one model.
void compare_gpus(Findings& findings, const JobFacts& job, GpuText text,
                  const Difference& difference) {
  std::vector<Observed> observed;
  for (const JobGpu& one : job_gpus(job)) {
    observed.push_back(
        {.place = one.place(), .value = text(*one.gpu), .kind = one.gpu->name.value_or("")});
  }
  find_differences(findings, observed, difference);
}

/// "NVIDIA H100 80GB HBM3", of the first GPU that says it.
std::string first_text(const JobFacts& job, GpuText text) {
  for (const JobGpu& one : job_gpus(job)) {
    if (const auto found = text(*one.gpu)) return *found;
  }
  return {};
}

Results of_gpus(const JobFacts& job, Findings findings, std::string_view what, GpuText text) {
  return std::move(findings).results(
      {.fine = fmt::format("{} {} on all GPUs of a model", what, first_text(job, text)),
       .unknown = no_gpus(job, "NVML"),
       .how = "run with --device cuda where NVML answers"});
}

Results judge_model(const JobFacts& job) {
  Findings findings;
  std::vector<Observed> observed;
  for (const JobGpu& one : job_gpus(job)) {
    observed.push_back({.place = one.place(), .value = one.gpu->name});
  }
  find_differences(findings, observed,
                   {.quantity = "model",
                    .cost = "the slower GPUs set the pace of every step",
                    .fix = "ask the scheduler for one model: srun --constraint, --gpus=TYPE:N"});
  const auto model = [](const CheckedGpu& gpu) { return gpu.name; };
  return std::move(findings).results({.fine = fmt::format("{} everywhere", first_text(job, model)),
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = "run with --device cuda where NVML answers"});
}

Results judge_memory(const JobFacts& job) {
  Findings findings;
  const auto memory = [](const CheckedGpu& gpu) { return bytes(gpu.memory); };
  compare_gpus(
      findings, job, memory,
      {.quantity = "memory",
       .cost = "a model that fits elsewhere may not fit here",
       .fix = "look for ECC, MIG and reserved memory that differ: nvidia-smi -q -d MEMORY"});
  return of_gpus(job, std::move(findings), "memory", memory);
}

Results judge_clocks(const JobFacts& job) {
  Findings findings;
  const auto sm = [](const CheckedGpu& gpu) { return prefixed(gpu.sm_clock_max, "Hz"); };
  compare_gpus(findings, job, sm,
               {.quantity = "highest SM clock",
                .cost = "this GPU computes at another speed than its like",
                .fix = "lift limits on clocks: nvidia-smi -rgc"});
  const auto memory = [](const CheckedGpu& gpu) { return prefixed(gpu.memory_clock_max, "Hz"); };
  compare_gpus(findings, job, memory,
               {.quantity = "highest memory clock",
                .cost = "this GPU reads memory at another speed than its like",
                .fix = "lift limits on memory clocks: nvidia-smi -rmc"});
  return of_gpus(job, std::move(findings), "highest SM clock", sm);
}

Results judge_application_clock(const JobFacts& job) {
  Findings findings;
  const auto clock = [](const CheckedGpu& gpu) { return prefixed(gpu.sm_clock_application, "Hz"); };
  compare_gpus(findings, job, clock,
               {.quantity = "SM clock set to",
                .cost = "this GPU computes at another speed than its like",
                .fix = "set all alike: nvidia-smi -ac, or nvidia-smi -rac"});
  std::string fine = "SM clock set to " + first_text(job, clock);
  const auto highest =
      first_text(job, [](const CheckedGpu& gpu) { return prefixed(gpu.sm_clock_max, "Hz"); });
  if (!highest.empty()) fine += fmt::format(" of at most {}", highest);
  return std::move(findings).results(
      {.fine = fine + " on all GPUs of a model",
       .unknown = no_gpus(job, "NVML"),
       .how = "GPUs without application clocks have none to report"});
}

Results judge_power_limit(const JobFacts& job) {
  Findings findings;
  const auto limit = [](const CheckedGpu& gpu) { return prefixed(gpu.power_limit, "W"); };
  compare_gpus(findings, job, limit,
               {.quantity = "power limit",
                .cost = "under load this GPU's clock settles elsewhere than that of its like",
                .fix = "set all alike: nvidia-smi -pl"});
  for (const JobGpu& one : job_gpus(job)) {
    const auto& [now, usual] = std::tie(one.gpu->power_limit, one.gpu->power_limit_default);
    constexpr double tolerance = 1;  // W; limits are set in whole watts
    if (!now || !usual || *now >= *usual - tolerance) continue;
    findings.warn(
        one.place(),
        {.what = fmt::format("power limit {}, by default {}", units::format_prefixed(*now, "W"),
                             units::format_prefixed(*usual, "W")),
         .cost = "long GEMMs run at lower clocks than the model is known for",
         .fix = "nvidia-smi -pl DEFAULT, unless the site means it"});
  }
  return of_gpus(job, std::move(findings), "power limit", limit);
}

Results judge_vbios(const JobFacts& job) {
  Findings findings;
  const auto vbios = [](const CheckedGpu& gpu) { return gpu.vbios; };
  compare_gpus(findings, job, vbios,
               {.quantity = "VBIOS",
                .cost = "clocks, fans and power management may differ from those of its like",
                .fix = "bring all GPUs to one firmware level"});
  return of_gpus(job, std::move(findings), "VBIOS", vbios);
}

/// Compares one fact of the nodes.
Results compare_nodes(const JobFacts& job, const Difference& difference,
                      std::optional<std::string> (*text)(const CheckedNode& node)) {
  Findings findings;
  std::vector<Observed> observed;
  std::string fine;
  for (const CheckedNode& node : job.nodes) {
    observed.push_back({.place = {.host = node.host}, .value = text(node)});
    if (fine.empty() && observed.back().value) {
      fine = fmt::format("{} {} on all nodes", difference.quantity, *observed.back().value);
    }
  }
  find_differences(findings, observed, difference);
  return std::move(findings).results(
      {.fine = fine, .unknown = "the nodes do not report it", .how = "mount /proc and /sys"});
}

Results judge_cpu_model(const JobFacts& job) {
  return compare_nodes(job,
                       {.quantity = "CPU",
                        .cost = "the slower nodes set the pace of every step",
                        .fix = "ask the scheduler for one kind of node: srun --constraint"},
                       [](const CheckedNode& node) -> std::optional<std::string> {
                         if (!node.cpu_model || !node.cores) return node.cpu_model;
                         return fmt::format("{}, {}", *node.cpu_model,
                                            base::counted(*node.cores, "core"));
                       });
}

/// Within 2%: firmware takes a little more or less of it on each node, a memory module is more.
/// What is missing is looked for, so the larger of the two values in the middle counts.
Results judge_node_memory(const JobFacts& job) {
  constexpr double tolerance = 0.02;
  Findings findings;
  std::vector<double> sizes;
  for (const CheckedNode& node : job.nodes) {
    if (findings.knows(node.memory)) sizes.push_back(*node.memory);
  }
  std::ranges::sort(sizes);
  const double usual = sizes.empty() ? 0 : sizes[sizes.size() / 2];
  for (const CheckedNode& node : job.nodes) {
    if (!node.memory || *node.memory >= (1 - tolerance) * usual) continue;
    findings.warn(
        {.host = node.host},
        {.what = fmt::format("memory {}, elsewhere {}", *bytes(node.memory), *bytes(usual)),
         .cost = "a missing memory module takes bandwidth along with it",
         .fix = "compare dmidecode -t memory with another node"});
  }
  return std::move(findings).results(
      {.fine = sizes.empty() ? "" : fmt::format("about {} on all nodes", *bytes(usual)),
       .unknown = "the nodes do not report it",
       .how = "mount /proc"});
}

Results judge_os(const JobFacts& job) {
  return compare_nodes(job,
                       {.quantity = "system",
                        .cost = "kernels differ in scheduling, page handling and network drivers",
                        .fix = "boot all nodes from one image"},
                       [](const CheckedNode& node) { return node.os; });
}

constexpr std::array likeness_table{
    Check{"gpu-model", "the model of all GPUs", judge_model},
    Check{"gpu-memory", "memory of GPUs of one model", judge_memory},
    Check{"gpu-clocks", "highest clocks of GPUs of one model", judge_clocks},
    Check{"application-clock", "the SM clock that GPUs of one model are set to",
          judge_application_clock},
    Check{"power-limit", "power limits of GPUs of one model, and their default", judge_power_limit},
    Check{"vbios", "firmware of GPUs of one model", judge_vbios},
    Check{"cpu-model", "CPU model and cores of all nodes", judge_cpu_model},
    Check{"node-memory", "memory of all nodes", judge_node_memory},
    Check{"os", "the operating system of all nodes", judge_os},
};

}  // namespace

std::span<const Check> likeness_checks() { return likeness_table; }

}  // namespace isoscale::system
