// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "units/text.hpp"

/// InfiniBand and RoCE ports.
namespace isoscale::system {
namespace {

struct JobPort {
  const CheckedNode* node = nullptr;
  const CheckedPort* port = nullptr;

  [[nodiscard]] Place place() const { return {.host = node->host, .device = port_text(*port)}; }
};

std::vector<JobPort> job_ports(const JobFacts& job) {
  std::vector<JobPort> ports;
  for (const CheckedNode& node : job.nodes) {
    if (!node.ports) continue;
    for (const CheckedPort& port : *node.ports) ports.push_back({.node = &node, .port = &port});
  }
  return ports;
}

Results of_ports(const JobFacts& job, Findings findings, std::string fine) {
  const bool any_known = std::ranges::any_of(
      job.nodes, [](const CheckedNode& node) { return node.ports.has_value(); });
  return std::move(findings).results(
      {.fine = std::move(fine),
       .unknown = any_known ? "the nodes have no InfiniBand or RoCE port that tells it"
                            : "the nodes' adapters are not known",
       .how = any_known ? "" : "mount /sys"});
}

Results judge_state(const JobFacts& job) {
  Findings findings;
  for (const JobPort& one : job_ports(job)) {
    const CheckedPort& port = *one.port;
    if (!findings.knows(port.state)) continue;
    const bool is_linked = !port.physical_state || *port.physical_state == "LinkUp";
    if (is_up(port) && is_linked) continue;
    findings.warn(one.place(),
                  {.what = fmt::format("state {}, physical state {}", *port.state,
                                       port.physical_state.value_or("not known")),
                   .cost = "nothing is sent over it: GPUs beside it go through another one",
                   .fix = "look at cable, switch port and subnet manager; a port that is not meant "
                          "for the job may be left out of NCCL_IB_HCA and UCX_NET_DEVICES"});
  }
  return of_ports(job, std::move(findings), "all ports are ACTIVE and LinkUp");
}

/// Ports of one kind: what they speak, and what card they are on as its PCIe link tells.
using PortKind = std::tuple<std::string, int, int>;
PortKind kind_of(const CheckedPort& port) {
  return {port.link_layer.value_or(""), port.pcie_generation_max.value_or(0),
          port.pcie_width_max.value_or(0)};
}

Results judge_rate(const JobFacts& job) {
  Findings findings;
  std::map<PortKind, std::vector<double>> rates;
  for (const JobPort& one : job_ports(job)) {
    if (!is_up(*one.port) || !findings.knows(one.port->rate)) continue;
    rates[kind_of(*one.port)].push_back(*one.port->rate);
  }
  std::map<PortKind, double> usual;
  std::vector<std::string> found;
  for (const auto& [kind, of_kind] : rates) {
    usual[kind] = *most_common(std::span<const double>{of_kind});
    found.push_back(units::format_prefixed(usual[kind], "bit/s"));
  }
  for (const JobPort& one : job_ports(job)) {
    if (!is_up(*one.port) || !one.port->rate) continue;
    const double expected = usual[kind_of(*one.port)];
    if (*one.port->rate >= expected) continue;
    findings.warn(one.place(),
                  {.what = fmt::format("runs at {}, most of its like at {}",
                                       units::format_prefixed(*one.port->rate, "bit/s"),
                                       units::format_prefixed(expected, "bit/s")),
                   .cost = "collectives over several nodes go at the pace of the slowest port",
                   .fix = "look at its cable and switch port: lanes or speed were lost (ibstat, "
                          "mlxlink)"});
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return of_ports(job, std::move(findings),
                  fmt::format("{} on all ports of a kind", listed(found)));
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
       .unknown = job.device == "cuda" ? "no node with a port that is up tells of its modules"
                                       : "the job plays on the host",
       .how = ""});
}

constexpr std::array checks{
    Check{"port-state", "whether InfiniBand and RoCE ports are up", judge_state},
    Check{"port-rate", "rates of ports of one kind", judge_rate},
    Check{"port-errors", "losses of the link and symbol errors of ports", judge_errors},
    Check{"gpudirect-rdma", "whether adapters can read GPU memory", judge_gpudirect},
};

}  // namespace

std::span<const Check> port_checks() { return checks; }

}  // namespace isoscale::system
