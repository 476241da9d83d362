// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>

#include "preflight/rules.hpp"
#include "statistics/estimate.hpp"

/// These rules check InfiniBand and RoCE adapters: their distance from GPUs, the distance of GPUs
/// from the cores of their ranks, and the state of ports.
namespace isoscale::preflight {
namespace {

using enum Verdict;

struct Nearest {
  PciDistance distance{};                 ///< from the GPU
  std::vector<const CheckedPort*> ports;  ///< all ports at this distance
};

/// Returns the ports that are nearest to a GPU among the ports of its node that are up. nullopt if
/// the distance of none of these is known.
std::optional<Nearest> nearest_ports(const GpuFacts& gpu, const CheckedNode& node) {
  if (!node.ports) return std::nullopt;
  std::optional<Nearest> nearest;
  for (const CheckedPort& port : *node.ports) {
    if (!is_up(port)) continue;
    const std::optional<PciDistance> distance = distance_between(gpu, port);
    if (!distance || (nearest && *distance > nearest->distance)) continue;
    if (!nearest || *distance < nearest->distance) nearest = Nearest{*distance, {}};
    nearest->ports.push_back(&port);
  }
  return nearest;
}

std::string no_distance(const JobFacts& job) {
  const bool any_port = std::ranges::any_of(job.nodes, has_up_port);
  if (job_gpus(job).empty()) return no_gpus(job, "NVML");
  return any_port ? "the PCI paths of GPUs or adapters are not known"
                  : "no InfiniBand or RoCE port is known to be up";
}

/// Warns of GPUs whose nearest adapter is on another NUMA node. If there is no such GPU, the text
/// of the result says if the path from some GPU to its adapter contains more than PCIe switches.
void judge_gpu_nic(Findings& findings, const JobFacts& job) {
  findings.otherwise.unknown = no_distance(job);
  for (const JobGpu& one : job_gpus(job)) {
    if (!one.node->ports) continue;
    const auto nearest = nearest_ports(*one.gpu, *one.node);
    if (!findings.knows(nearest)) continue;
    // If only PCIe switches lie between a GPU and an adapter (distance PXB in NCCL), NCCL uses
    // GPUDirect RDMA by default.
    if (nearest->distance > PciDistance::several_switches && !is_joined_by_c2c(*one.gpu)) {
      findings.otherwise.fine =
          "every GPU has an adapter on its own NUMA node; where more than PCIe switches lie "
          "between, NCCL uses GPUDirect RDMA only on Arm or if NCCL_NET_GDR_LEVEL allows it (PHB)";
    }
    if (nearest->distance != PciDistance::system) continue;
    findings.add(one.place(), wrong("its nearest adapter, {}, is on another NUMA node",
                                    nearest->ports.front()->device));
  }
}

/// Returns the adapter for each GPU of a node, as the text "GPU0-mlx5_0 GPU1-mlx5_1". If several
/// adapters are nearest to a GPU, it is the one that was chosen for the fewest earlier GPUs.
/// nullopt if the nearest adapters of a GPU are unknown.
std::optional<std::string> rail_map(std::span<const JobGpu> gpus) {
  std::map<std::string, int> users;
  std::vector<std::string> rails;
  for (const JobGpu& one : gpus) {
    const auto nearest = nearest_ports(*one.gpu, *one.node);
    if (!nearest) return std::nullopt;
    const auto chosen = std::ranges::min_element(
        nearest->ports, {}, [&](const CheckedPort* port) { return users[port->device]; });
    ++users[(*chosen)->device];
    rails.push_back(fmt::format("GPU{}-{}", one.index, (*chosen)->device));
  }
  return fmt::format("{}", fmt::join(rails, " "));
}

void judge_rail_map(Findings& findings, const JobFacts& job) {
  findings.otherwise.unknown = no_distance(job);
  std::vector<Observed> observed;
  const std::vector<JobGpu> gpus = job_gpus(job);
  for (auto begin = gpus.begin(); begin != gpus.end();) {
    const auto end =
        std::find_if(begin, gpus.end(), [&](const JobGpu& one) { return one.node != begin->node; });
    observed.push_back({.place = {.host = begin->node->host}, .value = rail_map({begin, end})});
    begin = end;
  }
  const std::string first = find_differences(findings, observed, "nearest adapters");
  findings.otherwise.fine =
      fmt::format("{} on {}", first,
                  observed.size() == 1 ? "the node" : fmt::format("all {} nodes", observed.size()));
}

void judge_gpu_cores(Findings& findings, std::span<const JobGpu> gpus, const JobFacts& job) {
  if (gpus.empty()) findings.otherwise.unknown = no_gpus(job);
  for (const JobGpu& one : gpus) {
    const auto& cpus_of = one.node->numa_cpus;
    for (const CheckedRank* rank : one.ranks) {
      const auto near =
          one.gpu->numa_node ? cpus_of.find(fmt::format("{}", *one.gpu->numa_node)) : cpus_of.end();
      if (near == cpus_of.end() || near->second.empty() || rank->cpus.empty()) {
        findings.add(not_known);
      } else if (std::ranges::find_first_of(rank->cpus, near->second) != rank->cpus.end()) {
        findings.add(nothing_wrong);
      } else {
        findings.add(one.place(),
                     wrong("its rank has no CPU on the GPU's NUMA node, {}", *one.gpu->numa_node));
      }
    }
  }
}

struct JobPort {
  const CheckedNode* node = nullptr;
  const CheckedPort* port = nullptr;
  Naming naming = Naming::usable;

  [[nodiscard]] Place place() const { return {.host = node->host, .device = port_text(*port)}; }
};

/// Returns the effect of NCCL_IB_HCA on a port, for all ranks of its node together. Ranks without
/// the variable, and all ranks of a job on the host, may use the port. If ranks differ, "named"
/// overrides "usable", which overrides "left out".
Naming naming_on(const JobFacts& job, const NodeRanks& node, const CheckedPort& port) {
  Naming naming = Naming::left_out;
  for (const CheckedRank* rank : node.ranks) {
    const auto list = job.device == "cuda" ? setting(*rank, "NCCL_IB_HCA") : std::nullopt;
    naming = std::max(naming, list ? naming_of(*list, port) : Naming::usable);
  }
  return naming;
}

/// Returns the ports that NCCL_IB_HCA does not leave out, on nodes that have ranks of the job.
std::vector<JobPort> job_ports(const JobFacts& job) {
  std::vector<JobPort> ports;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (node.facts == nullptr || !node.facts->ports) continue;
    for (const CheckedPort& port : *node.facts->ports) {
      const Naming naming = naming_on(job, node, port);
      if (naming == Naming::left_out) continue;
      ports.push_back({.node = node.facts, .port = &port, .naming = naming});
    }
  }
  return ports;
}

/// The GPUs of the job by node.
using GpusByNode = std::map<const CheckedNode*, std::vector<const GpuFacts*>>;
GpusByNode gpus_by_node(const JobFacts& job) {
  GpusByNode gpus;
  for (const JobGpu& one : job_gpus(job)) gpus[one.node].push_back(one.gpu);
  return gpus;
}

/// True if the port is one of those nearest to some GPU of its node. It is compared with the ports
/// that are up; if it is down itself, it must be nearer to the GPU than all of these.
bool is_rail(const JobPort& one, const GpusByNode& gpus) {
  const auto on_node = gpus.find(one.node);
  if (on_node == gpus.end()) return false;
  return std::ranges::any_of(on_node->second, [&](const GpuFacts* gpu) {
    const std::optional<PciDistance> distance = distance_between(*gpu, *one.port);
    const std::optional<Nearest> nearest = nearest_ports(*gpu, *one.node);
    if (!distance) return false;
    if (is_up(*one.port)) return nearest && *distance == nearest->distance;
    return !nearest || *distance < nearest->distance;
  });
}

/// Sets the text that a rule about ports shows if no port has the fact that the rule needs.
void set_unknown_ports(Findings& findings, const JobFacts& job) {
  const bool any_known = std::ranges::any_of(
      job.nodes, [](const CheckedNode& node) { return node.ports.has_value(); });
  findings.otherwise.unknown = any_known
                                   ? "the nodes have no InfiniBand or RoCE port that reports it"
                                   : "the nodes' adapters are not known";
  if (!any_known) findings.otherwise.how = "mount /sys";
}

bool works(const CheckedPort& port) {
  return is_up(port) && (!port.physical_state || *port.physical_state == "LinkUp");
}

/// Counts ports with the same adapter name and number on all nodes: those whose state is known, and
/// those that work. A port that is down on all nodes is often unused on purpose, such as that of a
/// storage adapter.
struct SamePorts {
  std::size_t known = 0, working = 0;
};
using PortsByName = std::map<std::string, SamePorts>;

PortsByName ports_by_name(std::span<const JobPort> ports) {
  PortsByName by_name;
  for (const JobPort& one : ports) {
    if (!one.port->state) continue;
    SamePorts& same = by_name[port_text(*one.port)];
    ++same.known;
    if (works(*one.port)) ++same.working;
  }
  return by_name;
}

/// True if the job probably needs a port that does not work: because NCCL_IB_HCA names it; because
/// ports of the same name work on most other nodes; or, if no other node has a port of this name,
/// because it is the nearest port to a GPU.
bool is_missed(const JobPort& one, const PortsByName& by_name, const GpusByNode& gpus) {
  if (one.naming == Naming::named) return true;
  const SamePorts& same = by_name.at(port_text(*one.port));
  const std::size_t others = same.known - 1;
  return others == 0 ? is_rail(one, gpus) : 2 * same.working > others;
}

std::string fine_state(std::span<const JobPort> ports, const std::set<std::string>& unused) {
  if (unused.empty()) return "all ports are ACTIVE and LinkUp";
  const bool any = std::ranges::any_of(ports, [](const JobPort& one) { return works(*one.port); });
  return fmt::format("{}; down, but apparently not needed by the job: {}",
                     any ? "ports that the job needs are ACTIVE and LinkUp" : "no port is up",
                     listed({unused.begin(), unused.end()}));
}

void judge_state(Findings& findings, const JobFacts& job) {
  set_unknown_ports(findings, job);
  const std::vector<JobPort> ports = job_ports(job);
  const PortsByName by_name = ports_by_name(ports);
  const GpusByNode gpus = gpus_by_node(job);
  std::set<std::string> unused;
  for (const JobPort& one : ports) {
    const CheckedPort& port = *one.port;
    if (!findings.knows(port.state) || works(port)) continue;
    if (!is_missed(one, by_name, gpus)) {
      unused.insert(port_text(port));
      continue;
    }
    findings.add(one.place(), wrong("state {}, physical state {}", *port.state,
                                    port.physical_state.value_or("not known")));
  }
  findings.otherwise.fine = fine_state(ports, unused);
}

/// Returns the name of the group of ports that should have the same rate as this port: all ports of
/// the same name on all nodes or, if only one node has the name, those ports of the node that are
/// nearest to GPUs. "" means that the rate is not compared, since the adapters of a node may serve
/// different purposes.
std::string like_of(const JobPort& one, const PortsByName& by_name, const GpusByNode& gpus) {
  const auto same = by_name.find(port_text(*one.port));
  if (same != by_name.end() && same->second.known > 1) return same->first;
  return is_rail(one, gpus) ? fmt::format("ports of {}", one.node->host) : "";
}

void judge_rate(Findings& findings, const JobFacts& job) {
  set_unknown_ports(findings, job);
  const std::vector<JobPort> ports = job_ports(job);
  const PortsByName by_name = ports_by_name(ports);
  const GpusByNode gpus = gpus_by_node(job);
  std::map<std::string, std::vector<double>> rates;
  std::set<double> all;
  for (const JobPort& one : ports) {
    if (!is_up(*one.port) || !findings.knows(one.port->rate)) continue;
    rates[like_of(one, by_name, gpus)].push_back(*one.port->rate);
    all.insert(*one.port->rate);
  }
  std::map<std::string, double> usual;
  for (auto& [like, of_like] : rates) {
    // If several rates are equally common, most_common() then returns the highest of them.
    std::ranges::sort(of_like, std::greater{});
    usual[like] = *most_common(std::span<const double>{of_like});
  }
  for (const JobPort& one : ports) {
    if (!is_up(*one.port) || !one.port->rate) continue;
    const std::string like = like_of(one, by_name, gpus);
    if (like.empty() || *one.port->rate >= usual.at(like)) continue;
    findings.add(one.place(), wrong("runs at {}, most similar ports at {}",
                                    bit_rate_text(*one.port->rate), bit_rate_text(usual.at(like))));
  }
  std::vector<std::string> found;
  for (const double rate : all) found.push_back(bit_rate_text(rate));
  findings.otherwise.fine = fmt::format("{}; no port is slower than similar ports", listed(found));
}

/// Warns of ports with an error count (losses of the link or symbol errors) that is above 10 and
/// also above four times its median over the job's ports. Their cable, transceiver or hardware is
/// probably faulty; a few errors are normal after maintenance and when a link is started.
void judge_errors(Findings& findings, const JobFacts& job) {
  constexpr double fewest = 10, times_median = 4;
  struct Counter {
    std::optional<std::int64_t> CheckedPort::*count;
    std::string_view what;
  };
  set_unknown_ports(findings, job);
  const std::vector<JobPort> ports = job_ports(job);
  for (const auto& [counter, what] : {Counter{&CheckedPort::link_downed, "link losses"},
                                      Counter{&CheckedPort::symbol_errors, "symbol errors"}}) {
    std::vector<double> counts;
    for (const JobPort& one : ports) {
      const std::optional<std::int64_t>& count = one.port->*counter;
      if (findings.knows(count)) counts.push_back(static_cast<double>(*count));
    }
    const double limit = std::max(fewest, times_median * statistics::median(counts).value_or(0));
    for (const JobPort& one : ports) {
      const std::optional<std::int64_t>& count = one.port->*counter;
      if (!count || static_cast<double>(*count) <= limit) continue;
      findings.add(one.place(), wrong("{} {} since its counters were reset", *count, what));
    }
  }
}

/// Warns of nodes with an adapter that have neither the module nvidia_peermem nor dma-buf, which
/// kernel and driver must both support. NCCL needs one of the two for GPUDirect RDMA.
Answer judge_gpudirect(const CheckedNode& node) {
  if (!has_up_port(node)) return not_concerned;
  if (node.nvidia_peermem == true || node.dmabuf == true) return nothing_wrong;
  if (!node.nvidia_peermem || !node.dmabuf) return not_known;
  return {.wrong = "neither nvidia_peermem nor dma-buf is available"};
}

constexpr auto adapters_table = std::to_array<Rule>(
    {{"gpu-nic", judge_gpu_nic, warning,
      "its traffic to other nodes crosses the links between NUMA nodes, and NCCL uses GPUDirect "
      "RDMA over that distance only if NCCL_NET_GDR_LEVEL allows it (SYS)",
      "use GPUs near the adapter, or move the adapter; see nvidia-smi topo -m",
      "every GPU has an adapter on its own NUMA node", "", "mount /sys"},
     {"rail-map", judge_rail_map, warning,
      "traffic that should stay on one rail crosses the spine to another rail, or shares a port",
      "compare slots and device names of the nodes: ibdev2netdev, nvidia-smi topo -m", "", "",
      "mount /sys"},
     {"gpu-cores", all_gpus<judge_gpu_cores>, warning,
      "kernel launches, copies and proxy threads cross the links between NUMA nodes",
      "bind ranks to cores near their GPUs with launch/bind.sh, and give srun --gpu-bind=none; see "
      "nvidia-smi topo -m",
      "every rank has CPUs on the NUMA node of its GPU",
      "the NUMA nodes of GPUs or ranks are not known", "mount /sys"},
     {"port-state", judge_state, warning,
      "the job cannot use this port, so GPUs near it use another one",
      "check cable, switch port and subnet manager; if the job should not use the port, leave it "
      "out of NCCL_IB_HCA and UCX_NET_DEVICES"},
     {"port-rate", judge_rate, warning,
      "collectives across nodes run at the speed of the slowest port",
      "check its cable and switch port for lost lanes or a lower speed (ibstat, mlxlink)"},
     {"port-errors", judge_errors, warning,
      "packets are sent again, or the link is down for seconds",
      "clean or replace cable and transceiver; perfquery shows the counters",
      "few link losses and symbol errors"},
     {"gpudirect-rdma", each_node<judge_gpudirect>, warning,
      "adapters cannot read GPU memory, so traffic to other nodes goes through host memory",
      "modprobe nvidia_peermem, or use the driver's open kernel modules on Linux 5.12 or newer",
      "nodes with adapters have nvidia_peermem or dma-buf",
      "no node with a port that is up reports its modules", "", on_gpus}});

}  // namespace

std::span<const Rule> adapter_rules() { return adapters_table; }

}  // namespace isoscale::preflight
