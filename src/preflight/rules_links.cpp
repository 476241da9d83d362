// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "preflight/rules.hpp"

/// These rules check the links between GPUs, the PCI Express links of GPUs and adapters, and
/// settings that slow traffic between devices.
namespace isoscale::preflight {
namespace {

using enum Verdict;

std::string no_pairs(const JobFacts& job) {
  const std::vector<JobGpu> gpus = job_gpus(job);
  if (gpus.empty()) return no_gpus(job, "NVML");
  std::set<const CheckedNode*> nodes;
  for (const JobGpu& one : gpus) nodes.insert(one.node);
  return nodes.size() == gpus.size() ? "no node has two GPUs of the job"
                                     : "no source reports how GPUs are linked";
}

struct Pair {
  const CheckedNode* node = nullptr;
  const CheckedPeers* peers = nullptr;

  [[nodiscard]] Place place() const {
    return {.host = node->host, .device = fmt::format("GPU {} and GPU {}", peers->i, peers->j)};
  }
};

/// Returns, node after node, the pairs in CheckedNode::peers whose two GPUs both belong to the job.
/// If CheckedNode::peers lacks a pair of the job's GPUs on a node, this counts as an unknown fact:
/// the rank that collected the node's facts did not see one of the two GPUs.
std::vector<Pair> job_pairs(Findings& findings, const JobFacts& job) {
  findings.otherwise.unknown = no_pairs(job);
  std::map<const CheckedNode*, std::multiset<int>> gpus;
  for (const JobGpu& one : job_gpus(job)) gpus[one.node].insert(one.index);
  std::vector<Pair> pairs;
  std::size_t all = 0;
  for (const CheckedNode& node : job.nodes) {
    const std::multiset<int>& own = gpus[&node];
    all += own.size() * (own.size() - 1) / 2;
    for (const CheckedPeers& peers : node.peers) {
      if (!own.contains(peers.i) || !own.contains(peers.j)) continue;
      pairs.push_back({.node = &node, .peers = &peers});
    }
  }
  for (std::size_t i = pairs.size(); i < all; ++i) findings.add(not_known);
  return pairs;
}

void judge_peer_access(Findings& findings, const JobFacts& job) {
  for (const Pair& pair : job_pairs(findings, job)) {
    if (!findings.knows(pair.peers->peer_access) || *pair.peers->peer_access) continue;
    findings.add(pair.place(), {.wrong = "no peer access"});
  }
}

void judge_nvlinks(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  std::vector<Observed> observed;
  for (const JobGpu& one : gpus) {
    const GpuFacts& gpu = *one.gpu;
    if (!findings.knows(gpu.nvlinks_active)) continue;
    if (*gpu.nvlinks_active > 0) {
      findings.otherwise.fine = fmt::format("{} active NVLinks on every GPU", *gpu.nvlinks_active);
    }
    const int inactive = gpu.nvlinks_inactive.value_or(0);
    if (inactive > 0 && *gpu.nvlinks_active > 0) {
      findings.add(one.place(), {.wrong = fmt::format("{} of {} NVLinks are inactive", inactive,
                                                      inactive + *gpu.nvlinks_active),
                                 .cost = "this GPU has proportionally less bandwidth to the "
                                         "others, and collectives run at its speed"});
    } else {
      observed.push_back({.place = one.place(),
                          .value = base::counted(*gpu.nvlinks_active, "active NVLink"),
                          .kind = gpu.name.value_or("")});
    }
  }
  find_differences(findings, observed, "it has");
}

void judge_pairs(Findings& findings, const JobFacts& job) {
  const std::vector<Pair> pairs = job_pairs(findings, job);
  std::set<const CheckedNode*> with_nvlink;
  for (const Pair& pair : pairs) {
    if (pair.peers->link == "NVLink") with_nvlink.insert(pair.node);
  }
  std::set<std::string> links;
  for (const Pair& pair : pairs) {
    if (!findings.knows(pair.peers->link)) continue;
    links.insert(*pair.peers->link);
    if (pair.peers->link == "NVLink" || !with_nvlink.contains(pair.node)) continue;
    findings.add(pair.place(), wrong("connected by PCIe ({}), other pairs of the node by NVLink",
                                     *pair.peers->link));
  }
  findings.otherwise.fine =
      fmt::format("GPUs of a node are connected by {}", listed({links.begin(), links.end()}));
}

Answer judge_fabric(const JobGpu& one) {
  const std::optional<std::string>& state = one.gpu->fabric_state;
  if (!state) return not_known;
  if (*state == "completed" || *state == "not supported") return nothing_wrong;
  return wrong("its NVLink fabric is not ready: {}", *state);
}

std::string cluster_of(const std::string& fabric) { return fabric.substr(0, fabric.rfind('.')); }

/// True if all these GPUs fit into one NVLink domain that spans nodes: up to 72 GPUs of GB200 or
/// GB300 (NVL72). Other models have domains of unknown size, so the result is then false.
bool fits_one_domain(std::span<const JobGpu> gpus) {
  constexpr std::size_t most_gpus = 72;
  return gpus.size() <= most_gpus && std::ranges::all_of(gpus, [](const JobGpu& one) {
           return one.gpu->name && (one.gpu->name->find("GB200") != std::string::npos ||
                                    one.gpu->name->find("GB300") != std::string::npos);
         });
}

/// Warns of three problems with NVLink domains that span nodes. A GPU may be in no domain although
/// GPUs of the same model are in one. The GPUs of one domain may be split into cliques
/// (partitions). The job may be spread over several domains although one could hold it.
void judge_domain(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  // The cliques of each domain, by its cluster id.
  std::map<std::string, std::set<std::string>> cliques;
  std::set<std::string> models;  // models of which some GPU is in a domain
  for (const JobGpu& one : gpus) {
    findings.add(one.gpu->fabric_state || one.gpu->fabric ? nothing_wrong : not_known);
    if (!one.gpu->fabric) continue;
    cliques[cluster_of(*one.gpu->fabric)].insert(*one.gpu->fabric);
    models.insert(one.gpu->name.value_or(""));
  }
  for (const JobGpu& one : gpus) {
    const bool alone = one.gpu->fabric_state && !one.gpu->fabric;
    if (!alone || !models.contains(one.gpu->name.value_or(""))) continue;
    findings.add(one.place(), {.wrong = "belongs to no NVLink domain, but others of its model do",
                               .cost = "it reaches other nodes only through the network",
                               .fix = "look at its fabric in nvidia-smi -q; start nvidia-imex"});
  }
  for (const auto& [cluster, parts] : cliques) {
    if (parts.size() == 1) continue;
    findings.add(
        {.wrong = fmt::format("the GPUs of one NVLink domain are in {} cliques", parts.size()),
         .cost = "traffic between cliques goes through the network",
         .fix = "ask for nodes of one clique, or repartition the domain"});
  }
  if (cliques.size() > 1 && fits_one_domain(gpus)) {
    findings.add({.wrong = fmt::format("{} are in {} NVLink domains",
                                       base::counted(gpus.size(), "GPU"), cliques.size()),
                  .cost = "traffic between domains goes through the network, although one domain "
                          "could hold all GPUs",
                  .fix = "ask for nodes of one rack: srun --switches=1, or a block of "
                         "topology/block"});
  }
  if (!cliques.empty()) {
    findings.otherwise.fine = fmt::format("{} in {}", base::counted(gpus.size(), "GPU"),
                                          base::counted(cliques.size(), "NVLink domain"));
  }
}

/// Returns the bit/s that a PCIe link carries: lanes x transfers per second x code rate. The code
/// is 8b/10b in generations 1 and 2, 128b/130b in 3 to 5, and flits with about 242 of 256 bytes for
/// data in 6 (PCI Express Base Specification).
double pcie_rate(int generation, int width) {
  constexpr std::array<double, 6> lane{
      2.0e9, 4.0e9, 8e9 * 128 / 130, 16e9 * 128 / 130, 32e9 * 128 / 130, 64e9 * 242 / 256};
  const auto last = static_cast<int>(lane.size());
  return width * lane[static_cast<std::size_t>(std::clamp(generation, 1, last) - 1)];
}

/// Checks the PCIe links of GPUs, except GPUs that NVLink-C2C joins with their CPU. An idle GPU
/// lowers the generation of its link, but never the width. So the present width is compared with
/// the greatest width of this link. The present generation is not judged; the highest possible
/// generation is compared among GPUs of the same model.
void judge_gpu_pcie(Findings& findings, std::span<const JobGpu> gpus, const JobFacts& job) {
  if (gpus.empty()) findings.otherwise.unknown = no_gpus(job);
  std::vector<Observed> observed;
  for (const JobGpu& one : gpus) {
    const GpuFacts& gpu = *one.gpu;
    if (is_joined_by_c2c(gpu)) continue;
    if (gpu.pcie_generation_max) {
      observed.push_back({.place = one.place(),
                          .value = fmt::format("generation {}", *gpu.pcie_generation_max),
                          .kind = gpu.name.value_or("")});
    }
    if (!gpu.pcie_width || !gpu.pcie_width_max) {
      findings.add(not_known);
    } else if (*gpu.pcie_width >= *gpu.pcie_width_max) {
      findings.add(nothing_wrong);
    } else {
      findings.add(one.place(), wrong("the PCIe link uses {} of {} lanes", *gpu.pcie_width,
                                      *gpu.pcie_width_max));
    }
  }
  find_differences(findings, observed, "PCIe link of at most",
                   {.fix = "compare slot and firmware settings with those of similar GPUs"});
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

/// Warns of adapters whose PCIe link runs below its maximum and is not known to be as fast as the
/// network port. A link at its maximum is never reported, even if it is slower than the port.
void judge_nic_pcie(Findings& findings, const JobFacts& job) {
  for (const CheckedNode& node : job.nodes) {
    if (!node.ports) continue;
    for (const CheckedPort& port : *node.ports) {
      if (!is_up(port)) continue;
      const std::optional<bool> slow = is_link_slow(port);
      if (!findings.knows(slow) || !*slow) continue;
      const double rate = pcie_rate(*port.pcie_generation, *port.pcie_width);
      const std::string cost =
          fmt::format("the adapter can pass at most {} to its node{}", bit_rate_text(rate),
                      port.rate ? ", but its port runs at " + bit_rate_text(*port.rate) : "");
      findings.add({.host = node.host, .device = port_text(port)},
                   {.wrong = fmt::format("PCIe link is generation {} x{}, but could be {} x{}",
                                         *port.pcie_generation, *port.pcie_width,
                                         port.pcie_generation_max.value_or(*port.pcie_generation),
                                         port.pcie_width_max.value_or(*port.pcie_width)),
                    .cost = cost});
    }
  }
}

/// Warns if the IOMMU of a node translates addresses of devices. Nodes with NVLink-C2C are exempt:
/// GPUs there need the IOMMU to use the address spaces of processes (NVIDIA, Grace Platform
/// Software).
void judge_iommu(Findings& findings, const JobFacts& job) {
  for (const CheckedNode& node : job.nodes) {
    if (!findings.knows(node.iommu_translates) || !*node.iommu_translates) continue;
    if (node.gpus && std::ranges::any_of(*node.gpus, is_joined_by_c2c)) {
      findings.otherwise.fine = "on, as it should be where NVLink-C2C joins CPU and GPU";
    } else {
      findings.add({.host = node.host}, {.wrong = "the IOMMU translates addresses of devices"});
    }
  }
}

constexpr auto links_table = std::to_array<Rule>(
    {{"peer-access", judge_peer_access, warning,
      "data between them goes through host memory, at a fraction of the speed of PCIe or NVLink",
      "see nvidia-smi topo -p2p r: IOMMU, ACS, MIG or a container may forbid it",
      "peer access between all GPUs of a node", "", "nvidia-smi topo -p2p r shows it"},
     {"nvlinks", all_gpus<judge_nvlinks>, warning,
      "collectives run at the speed of the GPU with the fewest NVLinks",
      "see nvidia-smi nvlink -s; reset the GPUs; look for Xid 74", "no GPU has NVLink"},
     {"nvlink-pairs", judge_pairs, warning,
      "groups that include this pair communicate at the speed of PCIe",
      "use CUDA_VISIBLE_DEVICES to choose GPUs that NVLink connects; if it should connect all, see "
      "nvidia-smi nvlink -s",
      "", "", "nvidia-smi topo -m shows it"},
     {"nvlink-fabric", each_gpu<judge_fabric>, warning,
      "NVLink to other GPUs and reduction in the switches (NVLS) are off, or CUDA does not start",
      "start the fabric manager (systemctl status nvidia-fabricmanager; on NVL72 racks nvidia-imex "
      "too) and reset the GPUs",
      "ready on all GPUs that have one", "", "install a driver that reports NVLink fabrics"},
     {"nvlink-domain", all_gpus<judge_domain>, warning, "", "",
      "no NVLink domain spans several nodes", "", "install a driver that reports NVLink fabrics"},
     {"gpu-pcie", all_gpus<judge_gpu_pcie>, warning,
      "copies between host and GPU, and GPUDirect RDMA, are slower",
      "reseat the card or riser; see LnkSta in lspci -vv",
      "all lanes are used, and generations are equal", "no GPU is known to use its PCIe link",
      "lspci -vv shows LnkCap and LnkSta"},
     {"nic-pcie", judge_nic_pcie, warning, "",
      "move the adapter to a slot with more lanes, or reseat it; see LnkSta in lspci -vv",
      "each adapter's PCIe link is at its maximum or as fast as its port",
      "no InfiniBand or RoCE port is known to be up", "mount /sys"},
     {"iommu", judge_iommu, warning,
      "traffic between GPUs, and between GPUs and adapters, goes through the root complex instead "
      "of the PCIe switch, or fails",
      "boot with iommu=pt (on Arm iommu.passthrough=1), or turn it off in the firmware",
      "every IOMMU is off, or passes addresses through", "the kernel does not report it",
      "mount /sys", on_gpus},
     {"acs", each_node<[](const CheckedNode& node) {
        return flag(node.acs, true, "access control (ACS) redirects peer traffic on a PCIe switch");
      }>,
      warning,
      "traffic between GPUs, and between GPUs and adapters, goes through the root complex at a "
      "fraction of the speed",
      "turn ACS off in the firmware, or with setpci (NCCL's documentation, troubleshooting, PCI "
      "Access Control Services)",
      "no PCIe switch redirects peer traffic", "the configuration of PCIe switches cannot be read",
      "as root, see ACSCtl in lspci -vvv", on_gpus}});

}  // namespace

std::span<const Rule> link_rules() { return links_table; }

}  // namespace isoscale::preflight
