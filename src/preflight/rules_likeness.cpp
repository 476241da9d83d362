// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.hpp"
#include "preflight/job_view.hpp"
#include "preflight/rules.hpp"
#include "units/text.hpp"

/// These rules compare software among ranks, GPUs with other GPUs, and nodes with other nodes.
namespace isoscale::preflight {
namespace {

std::optional<std::string> version_of(const CheckedRank& rank, const std::string& key) {
  const auto found = rank.versions.find(key);
  return found == rank.versions.end() ? std::nullopt : std::optional{found->second};
}

/// Compares the version of one piece of software among all ranks; gives one result for each node
/// and version that differs.
void compare_versions(Findings& findings, const JobFacts& job, const std::string& key,
                      const Difference& difference) {
  std::vector<std::string> versions;
  for (const CheckedRank& rank : job.ranks) {
    const std::optional<std::string> version = version_of(rank, key);
    if (findings.knows(version)) versions.push_back(*version);
  }
  const auto usual = most_common(std::span<const std::string>{versions});
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) {
    const std::optional<std::string> version = version_of(rank, key);
    if (!version || version == usual) return std::string{};
    return fmt::format("{} {}, elsewhere {}", difference.quantity, *version, *usual);
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    Finding finding{.what = text, .cost = difference.cost, .fix = difference.fix};
    if (difference.verdict == Verdict::stop) {
      findings.stop(std::move(place), std::move(finding));
    } else {
      findings.warn(std::move(place), std::move(finding));
    }
  });
}

/// Returns "NCCL 2.27.7 on all ranks".
std::string on_all_ranks(const JobFacts& job, std::string_view what, const std::string& key) {
  for (const CheckedRank& rank : job.ranks) {
    if (const auto version = version_of(rank, key)) {
      return fmt::format("{} {} on all ranks", what, *version);
    }
  }
  return {};
}

Results judge_isoscale(const JobFacts& job) {
  Findings findings;
  const auto differ = [](std::string_view quantity) {
    return Difference{.quantity = quantity,
                      .cost =
                          "ranks play different programs: they hang, or measure what none of "
                          "both is",
                      .fix = "start the same program on all nodes, from a shared folder",
                      .verdict = Verdict::stop};
  };
  compare_versions(findings, job, "isoscale", differ("isoscale"));
  compare_versions(findings, job, "git", differ("isoscale's commit"));
  return std::move(findings).results({.fine = on_all_ranks(job, "isoscale", "isoscale"),
                                      .unknown = "no rank says what it is made of"});
}

Results judge_nccl(const JobFacts& job) {
  Findings findings;
  compare_versions(findings, job, "nccl",
                   {.quantity = "NCCL",
                    .cost = "versions do not understand each other: they hang or fail while they "
                            "connect",
                    .fix = "put the same libnccl.so.2 first in LD_LIBRARY_PATH on all nodes",
                    .verdict = Verdict::stop});
  return std::move(findings).results({.fine = on_all_ranks(job, "NCCL", "nccl"),
                                      .unknown = "no rank says its NCCL",
                                      .how = "run with --device cuda"});
}

Results judge_mpi(const JobFacts& job) {
  Findings findings;
  compare_versions(findings, job, "mpi",
                   {.quantity = "MPI library",
                    .cost = "releases may choose other algorithms and transports for the same call",
                    .fix = "load the same MPI on all nodes"});
  return std::move(findings).results(
      {.fine = on_all_ranks(job, "MPI library", "mpi"), .unknown = "no rank says its MPI library"});
}

Results judge_cuda(const JobFacts& job) {
  Findings findings;
  const auto differ = [](std::string_view quantity) {
    return Difference{.quantity = quantity,
                      .cost =
                          "other releases run other kernels: ranks differ in speed for no "
                          "reason of the hardware",
                      .fix = "install the same CUDA and driver on all nodes"};
  };
  compare_versions(findings, job, "cuda_driver", differ("CUDA of the driver"));
  compare_versions(findings, job, "cuda_runtime", differ("CUDA runtime"));
  compare_versions(findings, job, "cublas", differ("cuBLAS"));
  return std::move(findings).results({.fine = on_all_ranks(job, "CUDA runtime", "cuda_runtime"),
                                      .unknown = "no rank says its CUDA",
                                      .how = "run with --device cuda"});
}

Results judge_driver(const JobFacts& job) {
  Findings findings;
  std::vector<Observed> observed;
  // One GPU of each node is compared: all GPUs of a node have the same driver.
  const CheckedNode* last = nullptr;
  std::string fine;
  for (const JobGpu& one : job_gpus(job)) {
    if (one.node == last) continue;
    last = one.node;
    observed.push_back({.place = {.host = one.node->host}, .value = one.gpu->driver});
    if (one.gpu->driver && fine.empty()) {
      fine = fmt::format("driver {} on all nodes", *one.gpu->driver);
    }
  }
  find_differences(findings, observed,
                   {.quantity = "driver",
                    .cost = "drivers differ in clocks, power and NVLink handling",
                    .fix = "install the same driver on all nodes"});
  return std::move(findings).results({.fine = fine,
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = "run with --device cuda where NVML answers"});
}

Results judge_build(const JobFacts& job) {
  Findings findings;
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    const auto type = version_of(rank, "build_type");
    if (!findings.knows(type) || *type == "Release" || *type == "RelWithDebInfo") return {};
    return fmt::format("isoscale was built as '{}'", *type);
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "what it does between operations takes longer: gaps and small messages "
                           "look worse",
                   .fix = "build it with cmake --preset release"});
  });
  return std::move(findings).results({.fine = on_all_ranks(job, "built as", "build_type"),
                                      .unknown = "no rank says how it was built"});
}

using GpuText = std::optional<std::string> (*)(const CheckedGpu& gpu);

std::optional<std::string> prefixed(const std::optional<double>& value, std::string_view unit) {
  return value ? std::optional{units::format_prefixed(*value, unit)} : std::nullopt;
}

std::optional<std::string> bytes(const std::optional<double>& value) {
  if (!value || *value < 0) return std::nullopt;
  return units::format(units::Bytes{static_cast<std::uint64_t>(*value)});
}

/// Compares a fact, as text, among the GPUs of each model.
void compare_gpus(Findings& findings, const JobFacts& job, GpuText text,
                  const Difference& difference) {
  std::vector<Observed> observed;
  for (const JobGpu& one : job_gpus(job)) {
    observed.push_back(
        {.place = one.place(), .value = text(*one.gpu), .kind = one.gpu->name.value_or("")});
  }
  find_differences(findings, observed, difference);
}

/// Returns the text of the first GPU for which there is one: "NVIDIA H100 80GB HBM3".
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

/// Compares one fact, as text, among all nodes.
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

/// Warns if a node has over 2% less memory than the others. Firmware may reserve up to 2% more on
/// some nodes, and a missing memory module costs more than that. Of an even number of nodes, the
/// upper of the two middle sizes counts as usual, since too little memory is the fault to find.
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
    Check{"isoscale-version", "isoscale and its commit on all ranks", judge_isoscale},
    Check{"nccl-version", "NCCL on all ranks", judge_nccl},
    Check{"mpi-version", "the MPI library on all ranks", judge_mpi},
    Check{"cuda-version", "CUDA of driver and runtime, and cuBLAS, on all ranks", judge_cuda},
    Check{"gpu-driver", "the driver of the GPUs on all nodes", judge_driver},
    Check{"debug-build", "whether isoscale was built with optimization", judge_build},
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

}  // namespace isoscale::preflight
