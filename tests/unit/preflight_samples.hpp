// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include "matchers.hpp"
#include "preflight/job_facts.hpp"

/// Job facts to judge, and what a check says of them.
namespace isoscale::preflight {

/// Returns the names of all checks; each gives one result for a job of which nothing is known.
inline std::vector<std::string> check_names() {
  return mapped(check_job({}, {}), &CheckResult::name);
}

inline std::vector<CheckResult> results_of(const JobFacts& job, std::string_view check) {
  std::vector<CheckResult> results = check_job(job, {});
  std::erase_if(results, [&](const CheckResult& result) { return result.name != check; });
  return results;
}

/// The numbers in a sentence with their units, and names with an underscore or a dot: "37.3 GiB
/// 74.5 GiB" of "memory 37.3 GiB, elsewhere 74.5 GiB". Tests compare these and not the sentence.
inline std::string numbers(const std::string& sentence) {
  std::string found;
  std::istringstream words{sentence};
  bool is_unit_next = false;
  for (std::string word; words >> word;) {
    constexpr const char* edges = ",;:.()'";
    const std::size_t begin = word.find_first_not_of(edges);
    if (begin == std::string::npos) continue;
    word = word.substr(begin, word.find_last_not_of(edges) + 1 - begin);
    const bool is_number = word.find_first_of("0123456789_.") != std::string::npos;
    if (is_number || (is_unit_next && word[0] >= 'A' && word[0] <= 'Z')) {
      found += (found.empty() ? "" : " ") + word;
    }
    is_unit_next = is_number;
  }
  return found;
}

/// "warning|c1|GPU 0 (0000:1b:00.0)|37.3 GiB 74.5 GiB" of all that it says, a line each, with
/// numbers(); of one that is ok "ok|||" and numbers().
inline std::string said(const JobFacts& job, std::string_view check) {
  std::string lines;
  for (const CheckResult& result : results_of(job, check)) {
    lines += fmt::format("{}{}|{}|{}|{}", lines.empty() ? "" : "\n", name(result.verdict),
                         result.host, result.device, numbers(result.what));
  }
  return lines;
}

/// A change of a job, and the text that a check then gives; a text without a "|" is only the first
/// verdict.
struct Change {
  std::string said;
  std::function<void(JobFacts&)> make = [](JobFacts&) {};
};
/// Makes each change to a job of its own.
inline void expect_said(const JobFacts& base, std::string_view check,
                        const std::vector<Change>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    JobFacts job = base;
    changes[i].make(job);
    std::string found = said(job, check);
    if (changes[i].said.find('|') == std::string::npos) found = found.substr(0, found.find('|'));
    EXPECT_EQ(found, changes[i].said) << check << ", change " << i;
  }
}

/// Ranks, `per_node` on each node "c0", "c1", ..., of which nothing else is known.
inline JobFacts bare_job(std::string device, int nodes, int per_node) {
  JobFacts job;
  job.device = std::move(device);
  job.world = nodes * per_node;
  for (int n = 0; n < nodes; ++n) {
    CheckedNode& node = job.nodes.emplace_back();
    node.node = n;
    node.host = fmt::format("c{}", n);
    for (int r = 0; r < per_node; ++r) {
      CheckedRank& rank = job.ranks.emplace_back();
      rank.rank = n * per_node + r;
      rank.node = n;
      rank.local_rank = r;
      rank.pid = 1000 + rank.rank;
    }
  }
  return job;
}

/// The same with a GPU for each rank, of which nothing but UUID, bus and model is known.
inline JobFacts gpu_job(int nodes, int per_node) {
  JobFacts job = bare_job("cuda", nodes, per_node);
  for (CheckedRank& rank : job.ranks) {
    GpuFacts gpu;
    gpu.uuid = fmt::format("GPU-{}", rank.rank);
    gpu.pci_bus_id = fmt::format("0000:{:02x}:00.0", rank.local_rank + 1);
    gpu.name = "NVIDIA H100 80GB HBM3";
    rank.gpu = gpu.uuid;
    auto& gpus = job.nodes[static_cast<std::size_t>(rank.node)].gpus;
    if (!gpus) gpus.emplace();
    gpus->push_back(std::move(gpu));
  }
  return job;
}
inline GpuFacts& gpu_at(JobFacts& job, std::size_t node, std::size_t gpu) {
  return job.nodes[node].gpus->at(gpu);
}
/// Changes that give a member of all nodes, all GPUs or all ranks a value.
template <class Member, class Value>
auto on_nodes(Member member, Value value) {
  return [=](JobFacts& job) {
    for (CheckedNode& node : job.nodes) node.*member = value;
  };
}
template <class Member, class Value>
auto on_job_gpus(Member member, Value value) {
  return [=](JobFacts& job) {
    for (CheckedNode& node : job.nodes) {
      for (GpuFacts& gpu : *node.gpus) gpu.*member = value;
    }
  };
}
template <class Member, class Value>
auto on_ranks(Member member, Value value) {
  return [=](JobFacts& job) {
    for (CheckedRank& rank : job.ranks) rank.*member = value;
  };
}
inline auto on_environment(const std::string& name, const std::string& value) {
  return [=](JobFacts& job) {
    for (CheckedRank& rank : job.ranks) rank.environment[name] = value;
  };
}

inline CheckedPort port_up(std::string device) {
  CheckedPort port;
  port.device = std::move(device);
  port.link_layer = "InfiniBand";
  port.state = "ACTIVE";
  port.physical_state = "LinkUp";
  return port;
}
inline void add_ports(JobFacts& job) {
  for (CheckedNode& node : job.nodes) node.ports = {port_up("mlx5_0")};
}

/// Two nodes of eight H100s: beside each GPU an adapter, and two of storage with two ports each.
[[nodiscard]] JobFacts hgx_job();
/// One node of four L40S without NVLink, whose only adapter is on the first socket.
[[nodiscard]] JobFacts pcie_job();
/// Four nodes of one Grace Hopper.
[[nodiscard]] JobFacts grace_hopper_job();
/// Four nodes of four GB200 in one NVLink domain.
[[nodiscard]] JobFacts gb200_job();
/// Four nodes of two sockets without a GPU.
[[nodiscard]] JobFacts cpu_job();

/// One change to hgx_job(), and all that preflight then warns of or stops at: lines such as
/// "warning ecc-errors|c0|GPU 1 (0000:02:00.0)|3", with the numbers of what was found.
struct Fault {
  std::vector<std::string> found;
  std::function<void(JobFacts&)> plant;
};
[[nodiscard]] const std::vector<Fault>& faults();
[[nodiscard]] JobFacts broken_job();

}  // namespace isoscale::preflight
