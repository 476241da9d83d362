// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

/// One node of three GPUs that are joined so.
JobFacts joined_job(const std::string& link_01, const std::string& link_02,
                    const std::string& link_12) {
  JobFacts job = gpu_job(1, 3);
  job.nodes[0].peers = {{.i = 0, .j = 1, .peer_access = true, .link = link_01},
                        {.i = 0, .j = 2, .peer_access = true, .link = link_02},
                        {.i = 1, .j = 2, .peer_access = true, .link = link_12}};
  return job;
}

TEST(PeerAccessCheck, WarnsOfPairsWithoutIt) {
  JobFacts job = joined_job("NVLink", "NVLink", "NVLink");
  EXPECT_THAT(said(job, "peer-access"), ElementsAre("ok|||"));
  job.nodes[0].peers[2].peer_access = false;
  EXPECT_THAT(said(job, "peer-access"), ElementsAre("warning|c0|GPU 1 and GPU 2|"));
  // No rank of the job has the GPU any more.
  job.ranks.pop_back();
  EXPECT_EQ(results_of(job, "peer-access").front().verdict, Verdict::ok);
}

TEST(PeerAccessCheck, HasNothingToSayOfSingleGpus) {
  EXPECT_THAT(said(gpu_job(3, 1), "peer-access"), ElementsAre("not checked|||"));
  EXPECT_THAT(said(gpu_job(1, 2), "peer-access"), ElementsAre("not checked|||"));
}

TEST(NvlinkPairsCheck, WarnsOfPairsWithoutWhereOthersHaveIt) {
  EXPECT_THAT(said(joined_job("NVLink", "system", "NVLink"), "nvlink-pairs"),
              ElementsAre("warning|c0|GPU 0 and GPU 2|"));
  EXPECT_THAT(said(joined_job("one switch", "system", "system"), "nvlink-pairs"),
              ElementsAre("ok|||"));
}

TEST(NvlinksCheck, WarnsOfInactiveAndOfFewerOnes) {
  JobFacts job = gpu_job(1, 3);
  set_gpus(job, &GpuFacts::nvlinks_active, 12);
  set_gpus(job, &GpuFacts::nvlinks_inactive, 0);
  EXPECT_THAT(said(job, "nvlinks"), ElementsAre("ok|||12"));
  gpu_at(job, 0, 1).nvlinks_active = 10;
  gpu_at(job, 0, 1).nvlinks_inactive = 2;
  gpu_at(job, 0, 2).nvlinks_active = 8;
  EXPECT_THAT(said(job, "nvlinks"),
              testing::UnorderedElementsAre("warning|c0|GPU 1 (0000:02:00.0)|2 12 NVLinks",
                                            "warning|c0|GPU 2 (0000:03:00.0)|8 12"));
}

TEST(NvlinksCheck, FindsNoFaultWhereNoneAreWired) {
  JobFacts job = gpu_job(2, 1);
  set_gpus(job, &GpuFacts::nvlinks_active, 0);
  set_gpus(job, &GpuFacts::nvlinks_inactive, 18);
  EXPECT_THAT(said(job, "nvlinks"), ElementsAre("ok|||"));
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

TEST(GpuPcieCheck, WarnsOfLostLanesAndSlowerSlots) {
  JobFacts job = gpu_job(1, 3);
  set_gpus(job, &GpuFacts::pcie_width, 16);
  set_gpus(job, &GpuFacts::pcie_width_max, 16);
  set_gpus(job, &GpuFacts::pcie_generation, 1);  // idle
  set_gpus(job, &GpuFacts::pcie_generation_max, 5);
  EXPECT_EQ(results_of(job, "gpu-pcie").front().verdict, Verdict::ok);
  gpu_at(job, 0, 1).pcie_width = 8;
  gpu_at(job, 0, 2).pcie_generation_max = 3;
  EXPECT_THAT(said(job, "gpu-pcie"), ElementsAre("warning|c0|GPU 1 (0000:02:00.0)|8 16",
                                                 "warning|c0|GPU 2 (0000:03:00.0)|3 5"));
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

TEST(IommuAndAcsChecks, WarnWhereTrafficTakesTheLongWay) {
  JobFacts job = gpu_job(2, 1);
  for (CheckedNode& node : job.nodes) node.iommu_translates = node.acs = false;
  EXPECT_EQ(results_of(job, "iommu").front().verdict, Verdict::ok);
  EXPECT_EQ(results_of(job, "acs").front().verdict, Verdict::ok);
  job.nodes[1].iommu_translates = job.nodes[1].acs = true;
  EXPECT_EQ(results_of(job, "iommu").front().host, "c1");
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

TEST(RailMapCheck, TellsTheMapAndWhereItDiffers) {
  JobFacts job = nic_job();
  EXPECT_THAT(said(job, "rail-map"), ElementsAre("ok|||GPU0-mlx5_0 2"));
  job.nodes[1].ports->front().device = "mlx5_4";
  EXPECT_THAT(said(job, "rail-map"), ElementsAre("warning|c1||GPU0-mlx5_4 GPU0-mlx5_0"));
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

}  // namespace
}  // namespace isoscale::preflight
