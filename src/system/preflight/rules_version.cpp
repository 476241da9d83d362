// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>

#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"

/// Whether all ranks are made of the same.
namespace isoscale::system {
namespace {

std::optional<std::string> version_of(const CheckedRank& rank, const std::string& key) {
  const auto found = rank.versions.find(key);
  return found == rank.versions.end() ? std::nullopt : std::optional{found->second};
}

/// Compares a version among ranks; one result for each node and version that differs.
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

/// "NCCL 2.27.7 on all ranks"
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
  // One of a node: its GPUs have the same.
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

constexpr std::array version_table{
    Check{"isoscale-version", "isoscale and its commit on all ranks", judge_isoscale},
    Check{"nccl-version", "NCCL on all ranks", judge_nccl},
    Check{"mpi-version", "the MPI library on all ranks", judge_mpi},
    Check{"cuda-version", "CUDA of driver and runtime, and cuBLAS, on all ranks", judge_cuda},
    Check{"gpu-driver", "the driver of the GPUs on all nodes", judge_driver},
    Check{"debug-build", "whether isoscale was built with optimization", judge_build},
};

}  // namespace

std::span<const Check> version_checks() { return version_table; }

}  // namespace isoscale::system
