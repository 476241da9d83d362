// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "system/preflight/adapters.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "system/preflight/settings.hpp"
#include "units/text.hpp"

/// InfiniBand and RoCE ports.
namespace isoscale::system {
namespace {

struct JobPort {
  const CheckedNode* node = nullptr;
  const CheckedPort* port = nullptr;
  Naming naming = Naming::usable;

  [[nodiscard]] Place place() const { return {.host = node->host, .device = port_text(*port)}; }
};

/// What the ranks of a node were told to use, of which one is enough.
Naming naming_on(const JobFacts& job, const NodeRanks& node, const CheckedPort& port) {
  Naming naming = Naming::left_out;
  for (const CheckedRank* rank : node.ranks) {
    const auto list = job.device == "cuda" ? setting(*rank, "NCCL_IB_HCA") : std::nullopt;
    naming = std::max(naming, list ? naming_of(*list, port) : Naming::usable);
  }
  return naming;
}

/// Those that the job may use.
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

/// GPUs of the job by node, to which a port may be the nearest.
using GpusByNode = std::map<const CheckedNode*, std::vector<const CheckedGpu*>>;
GpusByNode gpus_by_node(const JobFacts& job) {
  GpusByNode gpus;
  for (const JobGpu& one : job_gpus(job)) gpus[one.node].push_back(one.gpu);
  return gpus;
}

/// Whether a port that is up is among the nearest of a GPU, or one that is down would be nearer
/// than all that are up.
bool is_rail(const JobPort& one, const GpusByNode& gpus) {
  const auto on_node = gpus.find(one.node);
  if (on_node == gpus.end()) return false;
  return std::ranges::any_of(on_node->second, [&](const CheckedGpu* gpu) {
    const std::optional<std::size_t> distance = distance_between(*gpu, *one.port);
    const std::optional<Nearest> nearest = nearest_ports(*gpu, *one.node);
    if (!distance) return false;
    if (is_up(*one.port)) return nearest && *distance == nearest->distance;
    return !nearest || *distance < nearest->distance;
  });
}

Results of_ports(const JobFacts& job, Findings findings, std::string fine) {
  const bool any_known = std::ranges::any_of(
      job.nodes, [](const CheckedNode& node) { return node.ports.has_value(); });
  return std::move(findings).results(
      {.fine = std::move(fine),
       .unknown = any_known ? "the nodes have no InfiniBand or RoCE port that reports it"
                            : "the nodes' adapters are not known",
       .how = any_known ? "" : "mount /sys"});
}

bool works(const CheckedPort& port) {
  return is_up(port) && (!port.physical_state || *port.physical_state == "LinkUp");
}

/// Ports of the same name on all nodes: adapters of storage, and second ports, often rest on all.
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

/// Whether a port that does not work is missed: NCCL was told to use it, most other nodes have it,
/// or, without others, it is a GPU's.
bool is_missed(const JobPort& one, const PortsByName& by_name, const GpusByNode& gpus) {
  if (one.naming == Naming::named) return true;
  const SamePorts& same = by_name.at(port_text(*one.port));
  const std::size_t others = same.known - 1;
  return others == 0 ? is_rail(one, gpus) : 2 * same.working > others;
}

std::string fine_state(std::span<const JobPort> ports, const std::set<std::string>& resting) {
  if (resting.empty()) return "all ports are ACTIVE and LinkUp";
  const bool any = std::ranges::any_of(ports, [](const JobPort& one) { return works(*one.port); });
  const std::vector<std::string> names{resting.begin(), resting.end()};
  return fmt::format("{}; down alike on all nodes, or nearest to no GPU of the job: {}",
                     any ? "ports that the job needs are ACTIVE and LinkUp" : "no port is up",
                     listed(names));
}

Results judge_state(const JobFacts& job) {
  Findings findings;
  const std::vector<JobPort> ports = job_ports(job);
  const PortsByName by_name = ports_by_name(ports);
  const GpusByNode gpus = gpus_by_node(job);
  std::set<std::string> resting;
  for (const JobPort& one : ports) {
    const CheckedPort& port = *one.port;
    if (!findings.knows(port.state) || works(port)) continue;
    if (!is_missed(one, by_name, gpus)) {
      resting.insert(port_text(port));
      continue;
    }
    findings.warn(one.place(),
                  {.what = fmt::format("state {}, physical state {}", *port.state,
                                       port.physical_state.value_or("not known")),
                   .cost = "nothing is sent over it: GPUs beside it go through another one",
                   .fix = "check cable, switch port and subnet manager; a port that is not meant "
                          "for the job may be left out of NCCL_IB_HCA and UCX_NET_DEVICES"});
  }
  return of_ports(job, std::move(findings), fine_state(ports, resting));
}

/// What a port's rate is compared with: the same port of other nodes; without others, ports beside
/// GPUs with each other. "" = nothing, adapters of one node may be for different uses.
std::string like_of(const JobPort& one, const PortsByName& by_name, const GpusByNode& gpus) {
  const auto same = by_name.find(port_text(*one.port));
  if (same != by_name.end() && same->second.known > 1) return same->first;
  return is_rail(one, gpus) ? fmt::format("ports of {}", one.node->host) : "";
}

/// The most common rate of each kind; of equally common ones the highest.
std::map<std::string, double> usual_rates(
    const std::map<std::string, std::map<double, std::size_t>>& rates) {
  std::map<std::string, double> usual;
  for (const auto& [kind, counts] : rates) {
    std::size_t most = 0;
    for (const auto& [rate, count] : counts) {
      if (count < most) continue;
      most = count;
      usual[kind] = rate;
    }
  }
  return usual;
}

Results judge_rate(const JobFacts& job) {
  Findings findings;
  const std::vector<JobPort> ports = job_ports(job);
  const PortsByName by_name = ports_by_name(ports);
  const GpusByNode gpus = gpus_by_node(job);
  std::map<std::string, std::map<double, std::size_t>> rates;
  std::set<double> all;
  for (const JobPort& one : ports) {
    if (!is_up(*one.port) || !findings.knows(one.port->rate)) continue;
    ++rates[like_of(one, by_name, gpus)][*one.port->rate];
    all.insert(*one.port->rate);
  }
  const std::map<std::string, double> usual = usual_rates(rates);
  for (const JobPort& one : ports) {
    if (!is_up(*one.port) || !one.port->rate) continue;
    const std::string like = like_of(one, by_name, gpus);
    if (like.empty() || *one.port->rate >= usual.at(like)) continue;
    findings.warn(one.place(),
                  {.what = fmt::format("runs at {}, most of its like at {}",
                                       units::format_prefixed(*one.port->rate, "bit/s"),
                                       units::format_prefixed(usual.at(like), "bit/s")),
                   .cost = "collectives over several nodes go at the pace of the slowest port",
                   .fix = "check its cable and switch port: lanes or speed were lost (ibstat, "
                          "mlxlink)"});
  }
  std::vector<std::string> found;
  for (const double rate : all) found.push_back(units::format_prefixed(rate, "bit/s"));
  return of_ports(job, std::move(findings),
                  fmt::format("{}; no port is slower than its like", listed(found)));
}

using Counter = std::optional<std::int64_t> CheckedPort::*;

/// A few errors come from maintenance and from links that train: more than ten, and than four times
/// the median of the job's ports, come from a cable, a transceiver or a port.
void judge_counter(Findings& findings, const JobFacts& job, Counter counter,
                   std::string_view what) {
  constexpr double fewest = 10, times_median = 4;
  std::vector<double> counts;
  for (const JobPort& one : job_ports(job)) {
    const std::optional<std::int64_t>& count = one.port->*counter;
    if (findings.knows(count)) counts.push_back(static_cast<double>(*count));
  }
  if (counts.empty()) return;
  const double limit = std::max(fewest, times_median * median(counts));
  for (const JobPort& one : job_ports(job)) {
    const std::optional<std::int64_t>& count = one.port->*counter;
    if (!count || static_cast<double>(*count) <= limit) continue;
    findings.warn(one.place(),
                  {.what = fmt::format("{} {} since its counters were reset", *count, what),
                   .cost = "packets are sent again, or the link goes away for seconds",
                   .fix = "clean or replace cable and transceiver; perfquery shows the counters"});
  }
}

Results judge_errors(const JobFacts& job) {
  Findings findings;
  judge_counter(findings, job, &CheckedPort::link_downed, "losses of the link");
  judge_counter(findings, job, &CheckedPort::symbol_errors, "symbol errors");
  return of_ports(job, std::move(findings), "few losses of links and symbol errors");
}

/// nvidia_peermem, or dma-buf of kernel and driver: NCCL uses either one.
Results judge_gpudirect(const JobFacts& job) {
  Findings findings;
  for (const CheckedNode& node : job.nodes) {
    if (job.device != "cuda" || !has_up_port(node)) continue;
    const bool can = node.nvidia_peermem == true || node.dmabuf == true;
    const bool cannot = node.nvidia_peermem == false && node.dmabuf == false;
    if (!can && !cannot) {
      findings.miss();
      continue;
    }
    findings.know();
    if (can) continue;
    findings.warn({.host = node.host},
                  {.what = "neither nvidia_peermem nor dma-buf is there",
                   .cost = "adapters cannot read GPU memory: what goes to other nodes passes host "
                           "memory",
                   .fix = "modprobe nvidia_peermem, or the open kernel modules of the driver on a "
                          "kernel from 5.12 on"});
  }
  return std::move(findings).results(
      {.fine = "nvidia_peermem or dma-buf is there on nodes with adapters",
       .unknown = job.device == "cuda" ? "no node with a port that is up reports its modules"
                                       : "the job runs on the host",
       .how = ""});
}

constexpr std::array port_table{
    Check{"port-state", "whether InfiniBand and RoCE ports that the job needs are up", judge_state},
    Check{"port-rate", "rates of ports against the same ports of other nodes", judge_rate},
    Check{"port-errors", "losses of the link and symbol errors of ports", judge_errors},
    Check{"gpudirect-rdma", "whether adapters can read GPU memory", judge_gpudirect},
};

}  // namespace

std::span<const Check> port_checks() { return port_table; }

}  // namespace isoscale::system
