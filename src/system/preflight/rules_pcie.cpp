// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "units/text.hpp"

/// The PCI Express links of GPUs and adapters, and what slows traffic between them.
namespace isoscale::system {
namespace {

/// Bits per second that a link carries: lanes by transfers a second by the code (PCI Express Base
/// Specification: 8b/10b in generations 1 and 2, 128b/130b in 3 to 5, flits of about 242/256 in 6).
double pcie_rate(int generation, int width) {
  constexpr std::array<double, 6> lane{
      2.0e9, 4.0e9, 8e9 * 128 / 130, 16e9 * 128 / 130, 32e9 * 128 / 130, 64e9 * 242 / 256};
  const auto last = static_cast<int>(lane.size());
  return width * lane[static_cast<std::size_t>(std::clamp(generation, 1, last) - 1)];
}

/// "generation 4 x8"
std::string link_text(int generation, int width) {
  return fmt::format("generation {} x{}", generation, width);
}

/// An idle GPU lowers the generation of its link, never the width: the generation that it can have
/// is compared with that of its like.
Results judge_gpu_pcie(const JobFacts& job) {
  constexpr std::string_view cost = "copies between host and GPU, and GPUDirect RDMA, are slower";
  Findings findings;
  std::vector<Observed> observed;
  for (const JobGpu& one : job_gpus(job)) {
    const CheckedGpu& gpu = *one.gpu;
    if (is_joined_by_c2c(gpu)) continue;
    if (gpu.pcie_generation_max) {
      observed.push_back({.place = one.place(),
                          .value = fmt::format("generation {}", *gpu.pcie_generation_max),
                          .kind = gpu.name.value_or("")});
    }
    if (!gpu.pcie_width || !gpu.pcie_width_max) {
      findings.miss();
      continue;
    }
    findings.know();
    if (*gpu.pcie_width >= *gpu.pcie_width_max) continue;
    findings.warn(one.place(), {.what = fmt::format("PCIe link has {} of {} lanes", *gpu.pcie_width,
                                                    *gpu.pcie_width_max),
                                .cost = std::string{cost},
                                .fix = "reseat the card or riser; see LnkSta in lspci -vv"});
  }
  find_differences(findings, observed,
                   {.quantity = "PCIe link of at most",
                    .cost = std::string{cost},
                    .fix = "compare slot and firmware settings with its like"});
  return std::move(findings).results({.fine = "all lanes are in use, generations are alike",
                                      .unknown = job_gpus(job).empty()
                                                     ? no_gpus(job, "NVML")
                                                     : "no GPU has a PCIe link that counts",
                                      .how = "lspci -vv shows LnkCap and LnkSta"});
}

std::optional<bool> is_link_slow(const CheckedPort& port) {
  if (!port.pcie_generation || !port.pcie_width) return std::nullopt;
  const bool is_reduced =
      (port.pcie_generation_max && *port.pcie_generation < *port.pcie_generation_max) ||
      (port.pcie_width_max && *port.pcie_width < *port.pcie_width_max);
  const bool is_enough =
      port.rate && pcie_rate(*port.pcie_generation, *port.pcie_width) >= *port.rate;
  return is_reduced && !is_enough;
}

/// A card may be able to do more than its port needs: only a link that is slower than the port
/// costs anything.
Results judge_nic_pcie(const JobFacts& job) {
  Findings findings;
  for (const CheckedNode& node : job.nodes) {
    if (!node.ports) continue;
    for (const CheckedPort& port : *node.ports) {
      if (!is_up(port)) continue;
      const std::optional<bool> slow = is_link_slow(port);
      if (!findings.knows(slow) || !*slow) continue;
      const double rate = pcie_rate(*port.pcie_generation, *port.pcie_width);
      findings.warn(
          {.host = node.host, .device = port_text(port)},
          {.what = fmt::format("PCIe link {} of at most {}",
                               link_text(*port.pcie_generation, *port.pcie_width),
                               link_text(port.pcie_generation_max.value_or(*port.pcie_generation),
                                         port.pcie_width_max.value_or(*port.pcie_width))),
           .cost = fmt::format(
               "the adapter cannot pass more than {} to its node{}",
               units::format_prefixed(rate, "bit/s"),
               port.rate ? ", its port runs at " + units::format_prefixed(*port.rate, "bit/s")
                         : std::string{}),
           .fix = "move it to a slot that has the lanes, or reseat it; see LnkSta in lspci -vv"});
    }
  }
  return std::move(findings).results({.fine = "no PCIe link is slower than its port",
                                      .unknown = "no InfiniBand or RoCE port is known to be up",
                                      .how = "mount /sys"});
}

bool plays_on_gpus(const JobFacts& job) { return job.device == "cuda"; }

/// Nodes that are joined to their GPUs by NVLink-C2C have their IOMMU on by design: it gives GPUs
/// the address spaces of processes (NVIDIA, Grace Platform Software).
Results judge_iommu(const JobFacts& job) {
  Findings findings;
  std::string fine = "off, or passes addresses through";
  for (const CheckedNode& node : job.nodes) {
    if (!plays_on_gpus(job) || !findings.knows(node.iommu_translates)) continue;
    if (!*node.iommu_translates) continue;
    if (node.gpus && std::ranges::any_of(*node.gpus, is_joined_by_c2c)) {
      fine = "on where NVLink-C2C joins CPU and GPU, as it is meant to be";
      continue;
    }
    findings.warn({.host = node.host},
                  {.what = "the IOMMU translates addresses of devices",
                   .cost = "traffic between GPUs, and between GPUs and adapters, passes the root "
                           "complex instead of the PCIe switch, or is refused",
                   .fix = "boot with iommu=pt (on Arm iommu.passthrough=1), or turn it off in the "
                          "firmware"});
  }
  return std::move(findings).results(
      {.fine = std::move(fine),
       .unknown = plays_on_gpus(job) ? "the kernel does not report it" : "the job runs on the host",
       .how = "mount /sys"});
}

Results judge_acs(const JobFacts& job) {
  Findings findings;
  for (const CheckedNode& node : job.nodes) {
    if (!plays_on_gpus(job) || !findings.knows(node.acs) || !*node.acs) continue;
    findings.warn({.host = node.host},
                  {.what = "access control (ACS) redirects peer traffic on a PCIe switch",
                   .cost = "traffic between GPUs, and between GPUs and adapters, passes the root "
                           "complex at a fraction of the speed",
                   .fix = "turn ACS off in the firmware, or with setpci (NCCL's documentation, "
                          "troubleshooting, PCI Access Control Services)"});
  }
  return std::move(findings).results(
      {.fine = "no PCIe switch redirects peer traffic",
       .unknown = plays_on_gpus(job) ? "the configuration of PCIe switches cannot be read"
                                     : "the job runs on the host",
       .how = "root sees ACSCtl in lspci -vvv"});
}

constexpr std::array pcie_table{
    Check{"gpu-pcie", "lanes and generation of the GPUs' PCIe links", judge_gpu_pcie},
    Check{"nic-pcie", "PCIe links of adapters against what their ports need", judge_nic_pcie},
    Check{"iommu", "whether an IOMMU translates addresses of devices", judge_iommu},
    Check{"acs", "whether PCIe switches redirect traffic between devices", judge_acs},
};

}  // namespace

std::span<const Check> pcie_checks() { return pcie_table; }

}  // namespace isoscale::system
