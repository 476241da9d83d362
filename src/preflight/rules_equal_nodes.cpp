// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <initializer_list>

#include "base/text.hpp"
#include "preflight/rules.hpp"
#include "results/records/launch_compatibility.hpp"
#include "units/quantity_text.hpp"

/// These rules compare things that should be the same: the software of all ranks, GPUs of the same
/// model, and nodes.
namespace isoscale::preflight {
namespace {

using enum Verdict;
using Text = std::optional<std::string>;

Text prefixed(const std::optional<double>& value, std::string_view unit) {
  return value ? std::optional{units::format_prefixed(*value, unit)} : std::nullopt;
}

Text bytes(const std::optional<double>& value) {
  return value && *value >= 0 ? std::optional{bytes_text(*value)} : std::nullopt;
}

/// Warns of ranks whose version of a piece of software differs from the most common one. `key` is
/// the key of this software in CheckedRank::versions. If all are alike, the result shows the
/// version. If one rule compares several pieces of software, the result shows only the version of
/// the first.
void compare_versions(Findings& findings, const JobFacts& job, std::string_view software,
                      const std::string& key) {
  std::vector<std::string> found;
  for (const CheckedRank& rank : job.ranks) {
    if (const auto version = version_of(rank, key)) found.push_back(*version);
  }
  const auto usual = most_common(std::span<const std::string>{found});
  if (findings.otherwise.fine.empty() && !found.empty()) {
    findings.otherwise.fine = fmt::format("{} {} on all ranks", software, found.front());
  }
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks&) -> Answer {
    const std::optional<std::string> version = version_of(rank, key);
    if (!version) return not_known;
    if (version == usual) return nothing_wrong;
    return wrong("{} {}, elsewhere {}", software, *version, *usual);
  });
}

/// Compares the versions of several libraries. `keys` are their keys in CheckedRank::versions and
/// in results::rank_fields, a table that also has their names.
void compare_libraries(Findings& findings, const JobFacts& job,
                       std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto* const field =
        std::ranges::find(results::rank_fields, key, &results::RankField::key);
    compare_versions(findings, job, field->machine, std::string{key});
  }
}

/// Compares a property, which `text` returns, among all GPUs of the same model. Sets the message
/// `fine` of the findings if it is not set. Returns the first known value; "" if none is known.
std::string compare_gpus(Findings& findings, std::span<const JobGpu> gpus,
                         std::string_view quantity, Text (*text)(const GpuFacts& gpu),
                         const Answer& difference = {}) {
  std::vector<Observed> observed;
  for (const JobGpu& one : gpus) {
    observed.push_back(
        {.place = one.place(), .value = text(*one.gpu), .kind = one.gpu->name.value_or("")});
  }
  std::string first = find_differences(findings, observed, quantity, difference);
  std::string& fine = findings.otherwise.fine;
  if (fine.empty()) fine = fmt::format("{} {} on all GPUs of the same model", quantity, first);
  return first;
}

/// Compares a property of nodes, given as text, among all nodes.
void compare_nodes(Findings& findings, const JobFacts& job, std::string_view quantity,
                   Text (*text)(const CheckedNode& node)) {
  findings.set_unknown("the nodes do not report it", "mount /proc and /sys");
  std::vector<Observed> observed;
  for (const CheckedNode& node : job.nodes) {
    observed.push_back({.place = {.host = node.host}, .value = text(node)});
  }
  findings.otherwise.fine =
      fmt::format("{} {} on all nodes", quantity, find_differences(findings, observed, quantity));
}

/// Compares the driver on the first GPU of each node; all GPUs of a node have the same driver.
void judge_driver(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  std::vector<Observed> observed;
  const CheckedNode* last = nullptr;
  for (const JobGpu& one : gpus) {
    if (one.node == std::exchange(last, one.node)) continue;
    observed.push_back({.place = {.host = one.node->host}, .value = one.gpu->driver});
  }
  findings.otherwise.fine =
      fmt::format("driver {} on all nodes", find_differences(findings, observed, "driver"));
}

void judge_build(Findings& findings, const JobFacts& job) {
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks&) -> Answer {
    const auto type = version_of(rank, "build_type");
    if (!type) return not_known;
    if (findings.otherwise.fine.empty()) {
      findings.otherwise.fine = fmt::format("built as {} on all ranks", *type);
    }
    if (*type == "Release" || *type == "RelWithDebInfo") return nothing_wrong;
    return wrong("isoscale was built as '{}'", *type);
  });
}

void judge_model(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  std::vector<Observed> observed;
  for (const JobGpu& one : gpus) {
    observed.push_back({.place = one.place(), .value = one.gpu->name});
  }
  findings.otherwise.fine =
      fmt::format("{} everywhere", find_differences(findings, observed, "model"));
}

Text highest_clock(const GpuFacts& gpu) { return prefixed(gpu.sm_clock_max, "Hz"); }

void judge_clocks(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  compare_gpus(findings, gpus, "highest SM clock", highest_clock);
  compare_gpus(findings, gpus, "highest memory clock",
               [](const GpuFacts& gpu) { return prefixed(gpu.memory_clock_max, "Hz"); },
               {.cost = "this GPU's memory runs at a different speed than that of similar GPUs",
                .fix = "remove limits on memory clocks: nvidia-smi -rmc"});
}

void judge_application_clock(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  const std::string first =
      compare_gpus(findings, gpus, "SM clock set to",
                   [](const GpuFacts& gpu) { return prefixed(gpu.sm_clock_application, "Hz"); });
  const auto known = std::ranges::find_if(
      gpus, [](const JobGpu& one) { return one.gpu->sm_clock_max.has_value(); });
  if (known == gpus.end()) return;
  findings.otherwise.fine = fmt::format("set to {} of at most {} on all GPUs of the same model",
                                        first, *highest_clock(*known->gpu));
}

void judge_power_limit(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  // The unit is W. Limits are set in whole watts, so smaller differences are due to rounding.
  constexpr double tolerance = 1;
  compare_gpus(findings, gpus, "power limit",
               [](const GpuFacts& gpu) { return prefixed(gpu.power_limit, "W"); });
  for (const JobGpu& one : gpus) {
    const auto &now = one.gpu->power_limit, &usual = one.gpu->power_limit_default;
    if (!now || !usual || *now >= *usual - tolerance) continue;
    findings.add(one.place(), {.wrong = fmt::format("power limit {}, default {}",
                                                    *prefixed(now, "W"), *prefixed(usual, "W")),
                               .cost = "long GEMMs run at lower clocks than usual for this model",
                               .fix = "nvidia-smi -pl DEFAULT, unless the limit is intended"});
  }
}

Text cpu_text(const CheckedNode& node) {
  if (!node.cpu_model || !node.cores) return node.cpu_model;
  return fmt::format("{}, {}", *node.cpu_model, base::counted(*node.cores, "core"));
}

/// Warns of nodes whose memory is over 2% smaller than usual. Firmware may reserve up to 2% more on
/// some nodes; a missing memory module costs more than 2%. The usual size is the median. If the
/// number of nodes is even, it is the larger of the two middle sizes, so that too little memory on
/// half of the nodes is found.
void judge_node_memory(Findings& findings, const JobFacts& job) {
  constexpr double tolerance = 0.02;
  std::vector<double> sizes;
  for (const CheckedNode& node : job.nodes) {
    if (findings.knows(node.memory)) sizes.push_back(*node.memory);
  }
  if (sizes.empty()) return;
  std::ranges::sort(sizes);
  const double usual = sizes[sizes.size() / 2];
  findings.otherwise.fine = fmt::format("about {} on all nodes", *bytes(usual));
  for (const CheckedNode& node : job.nodes) {
    if (!node.memory || *node.memory >= (1 - tolerance) * usual) continue;
    findings.add({.host = node.host},
                 wrong("memory {}, elsewhere {}", *bytes(node.memory), *bytes(usual)));
  }
}

constexpr auto likeness_table = std::to_array<Rule>(
    {{"isoscale-version",
      [](Findings& findings, const JobFacts& job) {
        compare_versions(findings, job, "isoscale", "isoscale");
        compare_versions(findings, job, "isoscale's commit", "git");
      },
      stop, "ranks run different programs, so the job hangs or its results mix two versions",
      "start the same program on all nodes, for example from a shared folder", "",
      "no rank reports its isoscale version"},
     {"nccl-version",
      [](Findings& findings, const JobFacts& job) { compare_libraries(findings, job, {"nccl"}); },
      stop, "different NCCL versions cannot communicate: ranks hang or fail while they connect",
      "put the same libnccl.so.2 first in LD_LIBRARY_PATH on all nodes", "",
      "no rank reports its NCCL version", "run with --device cuda"},
     {"mpi-version",
      [](Findings& findings, const JobFacts& job) {
        compare_versions(findings, job, "MPI library", "mpi");
      },
      warning, "releases may use different algorithms and transports for the same call",
      "load the same MPI on all nodes", "", "no rank reports its MPI library"},
     {"cuda-version",
      [](Findings& findings, const JobFacts& job) {
        compare_libraries(findings, job, {"cuda_runtime", "cuda_driver", "cublas"});
      },
      warning,
      "other releases run other kernels, so ranks may differ in speed on the same hardware",
      "install the same CUDA and driver on all nodes", "", "no rank reports its CUDA version",
      "run with --device cuda"},
     {"gpu-driver", all_gpus<judge_driver>, warning,
      "drivers may handle clocks, power and NVLink differently",
      "install the same driver on all nodes"},
     {"debug-build", judge_build, warning,
      "isoscale is slower between operations, so gaps grow and small messages look slower",
      "build it with cmake --preset release", "", "no rank reports how isoscale was built"},
     {"gpu-model", all_gpus<judge_model>, warning, "every step waits for the slower GPUs",
      "ask the scheduler for one model: srun --constraint, --gpus=TYPE:N"},
     {"gpu-memory", all_gpus<[](Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
        compare_gpus(findings, gpus, "memory",
                     [](const GpuFacts& gpu) { return bytes(gpu.memory); });
      }>,
      warning, "a model that fits elsewhere may not fit here",
      "check whether ECC, MIG or reserved memory differ: nvidia-smi -q -d MEMORY"},
     {"gpu-clocks", all_gpus<judge_clocks>, warning,
      "this GPU is faster or slower than similar GPUs", "remove clock limits: nvidia-smi -rgc"},
     {"application-clock", all_gpus<judge_application_clock>, warning,
      "this GPU is faster or slower than similar GPUs",
      "set the same clock on all: nvidia-smi -ac, or nvidia-smi -rac to reset it", "", "",
      "GPUs without application clocks do not report them"},
     {"power-limit", all_gpus<judge_power_limit>, warning,
      "under load, this GPU's clock differs from that of similar GPUs",
      "set the same limit on all: nvidia-smi -pl"},
     {"vbios", all_gpus<[](Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
        compare_gpus(findings, gpus, "VBIOS", [](const GpuFacts& gpu) { return gpu.vbios; });
      }>,
      warning, "clocks, fans and power management may differ from those of similar GPUs",
      "install the same firmware on all GPUs"},
     {"cpu-model",
      [](Findings& findings, const JobFacts& job) {
        compare_nodes(findings, job, "CPU", cpu_text);
      },
      warning, "every step waits for the slower nodes",
      "ask the scheduler for one kind of node: srun --constraint"},
     {"node-memory", judge_node_memory, warning,
      "a missing memory module also lowers the memory bandwidth",
      "compare dmidecode -t memory with another node", "", "the nodes do not report it",
      "mount /proc"},
     {"os",
      [](Findings& findings, const JobFacts& job) {
        compare_nodes(findings, job, "OS", [](const CheckedNode& node) { return node.os; });
      },
      warning, "kernels may differ in scheduling, page handling and network drivers",
      "boot all nodes from the same image"}});

}  // namespace

std::span<const Rule> likeness_rules() { return likeness_table; }

}  // namespace isoscale::preflight
