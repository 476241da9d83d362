// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/rules.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

TEST(PeerAccessCheck, LeavesOutPairsOfWhichTheJobHasOneGpuAlone) {
  JobFacts job = gpu_job(1, 3);
  job.nodes[0].peers = {{.i = 0, .j = 1, .peer_access = true, .link = "NVLink"},
                        {.i = 1, .j = 2, .peer_access = false, .link = "NVLink"}};
  expect_said(job, "peer-access",
              {{"warning|c0|GPU 1 and GPU 2|"}, {"ok", [](JobFacts& j) { j.ranks.pop_back(); }}});
  EXPECT_EQ(said(gpu_job(3, 1), "peer-access"), "not checked|||");
  EXPECT_EQ(said(gpu_job(1, 2), "peer-access"), "not checked|||");
}

TEST(NvlinkDomainCheck, WarnsOfCliquesDomainsAndGpusOutside) {
  JobFacts job = gpu_job(2, 2);
  on_job_gpus(&GpuFacts::name, "NVIDIA GB200")(job);
  on_job_gpus(&GpuFacts::fabric_state, "completed")(job);
  EXPECT_EQ(said(job, "nvlink-domain"), "ok|||");
  on_job_gpus(&GpuFacts::fabric, "ab.1")(job);
  expect_said(
      job, "nvlink-domain",
      {{"ok|||4 GPUs 1 NVLink"},
       {"warning|||2", [](JobFacts& j) { gpu_at(j, 1, 1).fabric = "ab.2"; }},
       {"warning|||4 GPUs 2 NVLink", [](JobFacts& j) { gpu_at(j, 1, 1).fabric = "cd.1"; }},
       {"warning|c1|GPU 1 (0000:02:00.0)|", [](JobFacts& j) { gpu_at(j, 1, 1).fabric.reset(); }}});
}

TEST(NvlinkDomainCheck, ExpectsSeveralOfManyGpusAndOfModelsOfUnknownDomains) {
  for (const auto& [nodes, per_node, model, says] :
       {std::tuple{2, 1, "NVIDIA H100 80GB HBM3", "ok|||2 GPUs 2 NVLink"},
        {19, 4, "NVIDIA GB200", "ok|||76 GPUs 2 NVLink"}}) {
    JobFacts job = gpu_job(nodes, per_node);
    on_job_gpus(&GpuFacts::name, model)(job);
    on_job_gpus(&GpuFacts::fabric_state, "completed")(job);
    on_job_gpus(&GpuFacts::fabric, "ab.1")(job);
    for (GpuFacts& gpu : *job.nodes.back().gpus) gpu.fabric = "cd.1";
    EXPECT_EQ(said(job, "nvlink-domain"), says);
  }
}

TEST(NicPcieCheck, WarnsOnlyWhereThePortNeedsMore) {
  JobFacts job = gpu_job(1, 1);
  add_ports(job);
  CheckedPort& port = job.nodes[0].ports->front();
  expect_said(job, "nic-pcie", {{"not checked"}});
  port.rate = 2e11;
  port.pcie_generation = 4;
  port.pcie_generation_max = 5;
  port.pcie_width = port.pcie_width_max = 16;
  EXPECT_EQ(said(job, "nic-pcie"), "ok|||");
  port.rate = 4e11;
  EXPECT_EQ(said(job, "nic-pcie"), "warning|c0|mlx5_0 port 1|4 x16 5 x16");
  EXPECT_EQ(numbers(results_of(job, "nic-pcie").front().cost), "252 Gbit/s 400 Gbit/s");
  port.pcie_generation_max = 4;  // no setting makes this adapter faster
  EXPECT_EQ(said(job, "nic-pcie"), "ok|||");
}

TEST(IommuAndAcsChecks, DoNotMatterWhereNoTrafficTakesTheLongWay) {
  JobFacts job = gpu_job(2, 1);
  job.nodes[0].iommu_translates = job.nodes[0].acs = false;
  job.nodes[1].iommu_translates = job.nodes[1].acs = true;
  expect_said(
      job, "iommu",
      {{"warning"}, {"ok|||NVLink-C2C", on_job_gpus(&GpuFacts::name, "NVIDIA GH200 480GB")}});
  expect_said(job, "acs",
              {{"warning"}, {"not checked|||", [](JobFacts& j) { j.device = "host"; }}});
}

/// Nodes of one GPU: mlx5_0 on its switch, mlx5_1 elsewhere.
JobFacts rail_job(int nodes) {
  JobFacts job = gpu_job(nodes, 1);
  for (CheckedNode& node : job.nodes) {
    GpuFacts& gpu = node.gpus->front();
    gpu.pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0";
    node.ports = {port_up("mlx5_0"), port_up("mlx5_1")};
    node.ports->front().pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";
    node.ports->back().pci_path = "pci0000:2a/0000:2a:01.0/0000:2b:00.0";
    for (CheckedPort& port : *node.ports) port.rate = 4e11;
    gpu.numa_node = node.ports->front().numa_node = node.ports->back().numa_node = 0;
  }
  return job;
}

TEST(GpuNicCheck, WarnsOfAnotherNumaNode) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) node.ports->back().numa_node = 1;
  expect_said(job, "gpu-nic",
              {{"ok|||"},
               {"warning|c1|GPU 0 (0000:01:00.0)|mlx5_1",
                [](JobFacts& j) { j.nodes[1].ports->front().state = "DOWN"; }},
               {"not checked", on_nodes(&CheckedNode::ports, std::vector<CheckedPort>{})}});
}

TEST(GpuNicCheck, TellsWhereGpuDirectIsLeftOut) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) {
    node.ports->front().pci_path = "pci0000:15/0000:15:05.0/0000:2a:00.0";  // host bridge
  }
  expect_said(
      job, "gpu-nic",
      {{"ok|||NCCL_NET_GDR_LEVEL"}, {"ok|||", on_job_gpus(&GpuFacts::name, "NVIDIA GH200 480GB")}});
}

void set_down(CheckedPort& port) {
  port.state = "DOWN";
  port.physical_state = "Disabled";
}

TEST(PortErrorsCheck, WarnsOfManyMoreThanElsewhere) {
  JobFacts job = bare_job("host", 4, 1);
  add_ports(job);
  const auto port = [&](std::size_t node) -> CheckedPort& {
    return job.nodes[node].ports->front();
  };
  for (std::size_t n = 0; n < 4; ++n) port(n).link_downed = 2;
  for (std::size_t n = 0; n < 4; ++n) port(n).symbol_errors = 0;
  port(0).link_downed = 10;
  expect_said(job, "port-errors", {{"ok"}});
  port(0).link_downed = 11;
  port(2).symbol_errors = 4000;
  EXPECT_EQ(said(job, "port-errors"), "warning|c0|mlx5_0 port 1|11\nwarning|c2|mlx5_0 port 1|4000");
  // All have many: maintenance, and no bad cable.
  for (std::size_t n = 0; n < 4; ++n) port(n).link_downed = 11;
  port(2).symbol_errors = 0;
  expect_said(job, "port-errors", {{"ok"}});
}

TEST(PortStateCheck, WarnsOfAPhysicalStateAndLetsPortsRestThatRestOnAllNodes) {
  JobFacts job = rail_job(3);
  expect_said(
      job, "port-state",
      {{"warning", [](JobFacts& j) { j.nodes[1].ports->front().physical_state = "Polling"; }},
       {"not checked|||", on_nodes(&CheckedNode::ports, std::vector<CheckedPort>{})}});
  for (CheckedNode& node : job.nodes) set_down(node.ports->back());
  EXPECT_EQ(said(job, "port-state"), "ok|||mlx5_1 1");
  // Two of three nodes have it.
  for (std::size_t n = 0; n < 2; ++n) job.nodes[n].ports->back() = port_up("mlx5_1");
  EXPECT_EQ(said(job, "port-state"), "warning|c2|mlx5_1 port 1|");
}

TEST(PortStateCheck, WantsTheOneBesideAGpuWhereANodeIsAlone) {
  const auto as_near = [](JobFacts& job) {
    std::vector<CheckedPort>& ports = *job.nodes[0].ports;
    ports.back().pci_path = ports.front().pci_path;
    set_down(ports.front());
  };
  expect_said(
      rail_job(1), "port-state",
      {{"ok", [](JobFacts& job) { set_down(job.nodes[0].ports->back()); }},
       {"warning|c0|mlx5_0 port 1|", [](JobFacts& job) { set_down(job.nodes[0].ports->front()); }},
       {"ok", as_near}});
}

TEST(PortStateCheck, FollowsWhatNcclWasToldToUseOnAnyRankOfANode) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) set_down(node.ports->back());
  expect_said(
      job, "port-state",
      {{"ok|||", on_environment("NCCL_IB_HCA", "=mlx5_0")},
       {"warning|c0 and c1|mlx5_1 port 1|", on_environment("NCCL_IB_HCA", "mlx5_0,mlx5_1:1")},
       {"ok", on_environment("NCCL_IB_HCA", "mlx5")}});
  job.nodes[1].ports->back() = port_up("mlx5_1");
  expect_said(job, "port-state",
              {{"warning", on_environment("NCCL_IB_HCA", "mlx5")},
               {"ok", on_environment("NCCL_IB_HCA", "^mlx5_1")}});
  // Each rank of a node may be told another rail.
  job = gpu_job(1, 2);
  job.nodes[0].ports = {port_up("mlx5_0"), port_up("mlx5_1"), port_up("mlx5_2")};
  job.ranks[0].environment["NCCL_IB_HCA"] = "mlx5_0";
  job.ranks[1].environment["NCCL_IB_HCA"] = "mlx5_1";
  set_down(job.nodes[0].ports->at(2));
  EXPECT_EQ(said(job, "port-state"), "ok|||");
  set_down(job.nodes[0].ports->at(1));
  EXPECT_EQ(said(job, "port-state"), "warning|c0|mlx5_1 port 1|");
}

TEST(PortRateCheck, LetsStorageBeSlowerThanRails) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) node.ports->back().rate = 2e11;
  EXPECT_EQ(said(job, "port-rate"), "ok|||200 Gbit/s 400 Gbit/s");
  job.nodes[0].ports->back().rate = 1e11;
  EXPECT_EQ(said(job, "port-rate"), "warning|c0|mlx5_1 port 1|100 Gbit/s 200 Gbit/s");
}

TEST(PortRateCheck, ComparesPortsBesideGpusOfANodeAlone) {
  JobFacts job = rail_job(1);
  CheckedNode& node = job.nodes[0];
  node.ports->back().rate = 2e11;
  expect_said(job, "port-rate", {{"ok"}});
  GpuFacts second = node.gpus->front();
  second.uuid = "GPU-1";
  second.pci_bus_id = "0000:02:00.0";
  second.pci_path = "pci0000:2a/0000:2a:02.0/0000:2c:00.0";
  node.gpus->push_back(second);
  job.ranks.push_back(job.ranks[0]);
  job.ranks[1].rank = job.ranks[1].local_rank = 1;
  job.ranks[1].gpu = "GPU-1";
  EXPECT_EQ(said(job, "port-rate"), "warning|c0|mlx5_1 port 1|200 Gbit/s 400 Gbit/s");
}

TEST(Naming, ReadsListsAsNcclDoes) {
  const auto naming = [](const char* list, const char* device, int number) {
    CheckedPort port = port_up(device);
    port.port = number;
    return naming_of(list, port);
  };
  for (const char* const list : {"mlx5_1", "=mlx5_0, mlx5_1:1"}) {
    EXPECT_EQ(naming(list, "mlx5_1", 1), Naming::named) << list;
  }
  for (const char* const list : {"mlx5", "", "^mlx5_0", "^=mlx5"}) {
    EXPECT_EQ(naming(list, "mlx5_1", 1), Naming::usable) << list;
  }
  for (const char* const list : {"=mlx5", "mlx5_1:2", "^mlx5_1"}) {
    EXPECT_EQ(naming(list, "mlx5_1", 1), Naming::left_out) << list;
  }
  EXPECT_EQ(naming("mlx5_1", "mlx5_10", 1), Naming::usable);  // begins so, may be for storage
  EXPECT_EQ(naming("mlx5_10", "mlx5_10", 2), Naming::usable);
}

}  // namespace
}  // namespace isoscale::preflight
