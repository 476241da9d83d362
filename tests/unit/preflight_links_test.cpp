// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight/job_view.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

TEST(PeerAccessCheck, LeavesOutPairsOfWhichTheJobHasOneGpuAlone) {
  JobFacts job = gpu_job(1, 3);
  job.nodes[0].peers = {{.i = 0, .j = 1, .peer_access = true, .link = "NVLink"},
                        {.i = 1, .j = 2, .peer_access = false, .link = "NVLink"}};
  EXPECT_THAT(said(job, "peer-access"), ElementsAre("warning|c0|GPU 1 and GPU 2|"));
  job.ranks.pop_back();
  EXPECT_EQ(results_of(job, "peer-access").front().verdict, Verdict::ok);
}

TEST(PeerAccessCheck, HasNothingToSayOfSingleGpus) {
  EXPECT_THAT(said(gpu_job(3, 1), "peer-access"), ElementsAre("not checked|||"));
  EXPECT_THAT(said(gpu_job(1, 2), "peer-access"), ElementsAre("not checked|||"));
}

TEST(NvlinkDomainCheck, WarnsOfCliquesDomainsAndGpusOutside) {
  JobFacts job = gpu_job(2, 2);
  set_gpus(job, &GpuFacts::name, "NVIDIA GB200");
  set_gpus(job, &GpuFacts::fabric_state, "completed");
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("ok|||"));
  set_gpus(job, &GpuFacts::fabric, "ab.1");
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("ok|||4 GPUs 1 NVLink"));
  gpu_at(job, 1, 1).fabric = "ab.2";
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("warning|||2"));
  gpu_at(job, 1, 1).fabric = "cd.1";
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("warning|||4 GPUs 2 NVLink"));
  gpu_at(job, 1, 1).fabric.reset();
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("warning|c1|GPU 1 (0000:02:00.0)|"));
}

TEST(NvlinkDomainCheck, KnowsTheSizeOfDomainsOfSomeModelsAlone) {
  JobFacts job = gpu_job(2, 1);
  set_gpus(job, &GpuFacts::fabric_state, "completed");
  gpu_at(job, 0, 0).fabric = "ab.1";
  gpu_at(job, 1, 0).fabric = "cd.1";
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("ok|||2 GPUs 2 NVLink"));
}

TEST(NvlinkDomainCheck, ExpectsSeveralOfManyGpus) {
  JobFacts job = gpu_job(19, 4);
  set_gpus(job, &GpuFacts::name, "NVIDIA GB200");
  set_gpus(job, &GpuFacts::fabric_state, "completed");
  for (CheckedNode& node : job.nodes) {
    for (GpuFacts& gpu : *node.gpus) gpu.fabric = node.node < 18 ? "ab.1" : "cd.1";
  }
  EXPECT_THAT(said(job, "nvlink-domain"), ElementsAre("ok|||76 GPUs 2 NVLink"));
}

TEST(NicPcieCheck, WarnsOnlyWhereThePortNeedsMore) {
  JobFacts job = gpu_job(1, 1);
  add_ports(job);
  CheckedPort& port = job.nodes[0].ports->front();
  EXPECT_EQ(results_of(job, "nic-pcie").front().verdict, Verdict::not_checked);
  port.rate = 2e11;
  port.pcie_generation = 4;
  port.pcie_generation_max = 5;
  port.pcie_width = port.pcie_width_max = 16;
  EXPECT_THAT(said(job, "nic-pcie"), ElementsAre("ok|||"));
  port.rate = 4e11;
  const auto results = results_of(job, "nic-pcie");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(numbers(results[0].what), "4 x16 5 x16");
  EXPECT_EQ(numbers(results[0].cost), "252 Gbit/s 400 Gbit/s");
}

TEST(IommuAndAcsChecks, DoNotMatterWhereNoTrafficTakesTheLongWay) {
  JobFacts job = gpu_job(2, 1);
  job.nodes[0].iommu_translates = job.nodes[0].acs = false;
  job.nodes[1].iommu_translates = job.nodes[1].acs = true;
  EXPECT_EQ(results_of(job, "iommu").front().verdict, Verdict::warning);
  EXPECT_EQ(results_of(job, "acs").front().verdict, Verdict::warning);
  set_gpus(job, &GpuFacts::name, "NVIDIA GH200 480GB");
  EXPECT_THAT(said(job, "iommu"), ElementsAre("ok|||NVLink-C2C"));
  job.device = "host";
  EXPECT_THAT(said(job, "acs"), ElementsAre("not checked|||"));
}

/// Two nodes of one GPU; adapters on the GPU's switch and on the other socket.
JobFacts nic_job() {
  JobFacts job = gpu_job(2, 1);
  add_ports(job);
  for (CheckedNode& node : job.nodes) {
    node.gpus->front().numa_node = 0;
    node.gpus->front().pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0";
    node.ports->push_back(port_up("mlx5_1"));
    node.ports->front().numa_node = 0;
    node.ports->front().pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";
    node.ports->back().numa_node = 1;
    node.ports->back().pci_path = "pci0000:99/0000:99:01.0/0000:9a:00.0";
  }
  return job;
}

TEST(GpuNicCheck, WarnsOfAnotherNumaNode) {
  JobFacts job = nic_job();
  EXPECT_THAT(said(job, "gpu-nic"), ElementsAre("ok|||"));
  job.nodes[1].ports->front().state = "DOWN";
  EXPECT_THAT(said(job, "gpu-nic"), ElementsAre("warning|c1|GPU 0 (0000:01:00.0)|mlx5_1"));
  for (CheckedNode& node : job.nodes) node.ports->clear();
  EXPECT_EQ(results_of(job, "gpu-nic").front().verdict, Verdict::not_checked);
}

TEST(GpuNicCheck, TellsWhereGpuDirectIsLeftOut) {
  JobFacts job = nic_job();
  for (CheckedNode& node : job.nodes) {
    node.ports->front().pci_path = "pci0000:15/0000:15:05.0/0000:2a:00.0";  // host bridge
  }
  EXPECT_THAT(said(job, "gpu-nic"), ElementsAre("ok|||NCCL_NET_GDR_LEVEL"));
  set_gpus(job, &GpuFacts::name, "NVIDIA GH200 480GB");
  EXPECT_THAT(said(job, "gpu-nic"), ElementsAre("ok|||"));
}

TEST(GpuCoresCheck, WarnsWhereNoCpuIsNear) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].numa_cpus = {{"0", {0, 1, 4, 5}}, {"1", {2, 3, 6, 7}}};
  gpu_at(job, 0, 0).numa_node = 0;
  gpu_at(job, 0, 1).numa_node = 1;
  job.ranks[0].cpus = {0, 1};
  job.ranks[1].cpus = {3, 4};
  EXPECT_EQ(results_of(job, "gpu-cores").front().verdict, Verdict::ok);
  job.ranks[1].cpus = {4, 5};
  EXPECT_THAT(said(job, "gpu-cores"), ElementsAre("warning|c0|GPU 1 (0000:02:00.0)|1"));
}

/// Ports of four nodes.
JobFacts port_job() {
  JobFacts job = bare_job("host", 4, 1);
  add_ports(job);
  return job;
}
CheckedPort& port_at(JobFacts& job, std::size_t node) { return job.nodes[node].ports->front(); }

TEST(PortStateCheck, WarnsOfPortsThatAreDown) {
  JobFacts job = port_job();
  port_at(job, 1).physical_state = "LinkErrorRecovery";
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::warning);
  for (CheckedNode& node : job.nodes) node.ports->clear();
  EXPECT_THAT(said(job, "port-state"), ElementsAre("not checked|||"));
}

TEST(PortErrorsCheck, WarnsOfManyMoreThanElsewhere) {
  JobFacts job = port_job();
  for (CheckedNode& node : job.nodes) {
    node.ports->front().link_downed = 2;
    node.ports->front().symbol_errors = 0;
  }
  EXPECT_EQ(results_of(job, "port-errors").front().verdict, Verdict::ok);
  port_at(job, 0).link_downed = 10;
  EXPECT_EQ(results_of(job, "port-errors").front().verdict, Verdict::ok);
  port_at(job, 0).link_downed = 11;
  port_at(job, 2).symbol_errors = 4000;
  EXPECT_THAT(said(job, "port-errors"),
              ElementsAre("warning|c0|mlx5_0 port 1|11", "warning|c2|mlx5_0 port 1|4000"));
  // All have many: maintenance, and no bad cable.
  for (CheckedNode& node : job.nodes) node.ports->front().link_downed = 11;
  port_at(job, 2).symbol_errors = 0;
  EXPECT_EQ(results_of(job, "port-errors").front().verdict, Verdict::ok);
}

/// Nodes of one GPU: mlx5_0 on its switch, mlx5_1 elsewhere.
JobFacts rail_job(int nodes) {
  JobFacts job = gpu_job(nodes, 1);
  add_ports(job);
  for (CheckedNode& node : job.nodes) {
    node.gpus->front().pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0";
    node.gpus->front().numa_node = 0;
    node.ports->front().pci_path = "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0";
    node.ports->push_back(port_up("mlx5_1"));
    node.ports->back().pci_path = "pci0000:2a/0000:2a:01.0/0000:2b:00.0";
    for (CheckedPort& port : *node.ports) {
      port.numa_node = 0;
      port.rate = 4e11;
    }
  }
  return job;
}
void set_down(CheckedPort& port) {
  port.state = "DOWN";
  port.physical_state = "Disabled";
}
void set_all(JobFacts& job, const std::string& variable, const std::string& value) {
  for (CheckedRank& rank : job.ranks) rank.environment[variable] = value;
}

TEST(PortStateCheck, LetsPortsRestThatRestOnAllNodes) {
  JobFacts job = rail_job(3);
  for (CheckedNode& node : job.nodes) set_down(node.ports->back());
  EXPECT_THAT(said(job, "port-state"), ElementsAre("ok|||mlx5_1 1"));
  // Two of three nodes have it.
  for (std::size_t n = 0; n < 2; ++n) job.nodes[n].ports->back() = port_up("mlx5_1");
  EXPECT_THAT(said(job, "port-state"), ElementsAre("warning|c2|mlx5_1 port 1|"));
}

TEST(PortStateCheck, WantsTheOneBesideAGpuWhereANodeIsAlone) {
  JobFacts job = rail_job(1);
  set_down(job.nodes[0].ports->back());
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::ok);
  job = rail_job(1);
  set_down(job.nodes[0].ports->front());
  EXPECT_THAT(said(job, "port-state"), ElementsAre("warning|c0|mlx5_0 port 1|"));
  // Another port is as near.
  job.nodes[0].ports->back().pci_path = job.nodes[0].ports->front().pci_path;
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::ok);
}

TEST(PortStateCheck, FollowsWhatNcclWasToldToUse) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) set_down(node.ports->back());
  set_all(job, "NCCL_IB_HCA", "=mlx5_0");
  EXPECT_THAT(said(job, "port-state"), ElementsAre("ok|||"));
  set_all(job, "NCCL_IB_HCA", "mlx5_0,mlx5_1:1");
  EXPECT_THAT(said(job, "port-state"), ElementsAre("warning|c0 and c1|mlx5_1 port 1|"));
  set_all(job, "NCCL_IB_HCA", "mlx5");
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::ok);
  job.nodes[1].ports->back() = port_up("mlx5_1");
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::warning);
  set_all(job, "NCCL_IB_HCA", "^mlx5_1");
  EXPECT_EQ(results_of(job, "port-state").front().verdict, Verdict::ok);
}

/// Each rank of a node may be told another rail.
TEST(PortStateCheck, JudgesWhatAnyRankOfANodeUses) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].ports = {port_up("mlx5_0"), port_up("mlx5_1"), port_up("mlx5_2")};
  job.ranks[0].environment["NCCL_IB_HCA"] = "mlx5_0";
  job.ranks[1].environment["NCCL_IB_HCA"] = "mlx5_1";
  set_down(job.nodes[0].ports->at(2));
  EXPECT_THAT(said(job, "port-state"), ElementsAre("ok|||"));
  set_down(job.nodes[0].ports->at(1));
  EXPECT_THAT(said(job, "port-state"), ElementsAre("warning|c0|mlx5_1 port 1|"));
}

TEST(PortRateCheck, LetsStorageBeSlowerThanRails) {
  JobFacts job = rail_job(2);
  for (CheckedNode& node : job.nodes) node.ports->back().rate = 2e11;
  EXPECT_THAT(said(job, "port-rate"), ElementsAre("ok|||200 Gbit/s 400 Gbit/s"));
  job.nodes[0].ports->back().rate = 1e11;
  EXPECT_THAT(said(job, "port-rate"),
              ElementsAre("warning|c0|mlx5_1 port 1|100 Gbit/s 200 Gbit/s"));
  job = rail_job(1);
  job.nodes[0].ports->back().rate = 2e11;
  EXPECT_EQ(results_of(job, "port-rate").front().verdict, Verdict::ok);
}

TEST(PortRateCheck, ComparesPortsBesideGpusOfANodeAlone) {
  JobFacts job = rail_job(1);
  CheckedNode& node = job.nodes[0];
  GpuFacts second = node.gpus->front();
  second.uuid = "GPU-1";
  second.pci_bus_id = "0000:02:00.0";
  second.pci_path = "pci0000:2a/0000:2a:02.0/0000:2c:00.0";
  node.gpus->push_back(second);
  job.ranks.push_back(job.ranks[0]);
  job.ranks[1].rank = job.ranks[1].local_rank = 1;
  job.ranks[1].gpu = "GPU-1";
  node.ports->back().rate = 2e11;
  EXPECT_THAT(said(job, "port-rate"),
              ElementsAre("warning|c0|mlx5_1 port 1|200 Gbit/s 400 Gbit/s"));
}

TEST(Naming, ReadsListsAsNcclDoes) {
  CheckedPort port = port_up("mlx5_1");
  EXPECT_EQ(naming_of("mlx5_1", port), Naming::named);
  EXPECT_EQ(naming_of("=mlx5_0, mlx5_1:1", port), Naming::named);
  EXPECT_EQ(naming_of("mlx5", port), Naming::usable);
  EXPECT_EQ(naming_of("", port), Naming::usable);
  EXPECT_EQ(naming_of("^mlx5_0", port), Naming::usable);
  EXPECT_EQ(naming_of("=mlx5", port), Naming::left_out);
  EXPECT_EQ(naming_of("mlx5_1:2", port), Naming::left_out);
  EXPECT_EQ(naming_of("^mlx5_1", port), Naming::left_out);
  EXPECT_EQ(naming_of("^=mlx5", port), Naming::usable);
  port.device = "mlx5_10";  // begins so, and may be for storage
  EXPECT_EQ(naming_of("mlx5_1", port), Naming::usable);
  port.port = 2;
  EXPECT_EQ(naming_of("mlx5_10", port), Naming::usable);
}

}  // namespace
}  // namespace isoscale::preflight
