// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/rules.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using Ports = std::vector<CheckedPort>;
using Counts = std::map<std::string, int>;

TEST(GpuDirectCheck, WantsEitherOfBothWays) {
  JobFacts job = gpu_job(1, 1);
  add_ports(job);
  job.nodes[0].nvidia_peermem = false;
  expect_said(job, "gpudirect-rdma",
              {{"not checked"}, {"ok", on_nodes(&CheckedNode::dmabuf, true)}});
  job.nodes[0].dmabuf = false;
  expect_said(
      job, "gpudirect-rdma",
      {{"warning|c0||nvidia_peermem"}, {"not checked", on_nodes(&CheckedNode::ports, Ports{})}});
}

/// Gives ranks of one node cores, which are their CPUs too.
JobFacts bound_job(const char* device, const std::vector<std::vector<int>>& cores) {
  JobFacts job = bare_job(device, 1, static_cast<int>(cores.size()));
  for (std::size_t r = 0; r < cores.size(); ++r) job.ranks[r].cores = job.ranks[r].cpus = cores[r];
  return job;
}

TEST(CoreChecks, FindWhetherRanksHaveCoresOfTheirOwnAndMoreThanOne) {
  expect_said(bound_job("host", {{0, 1}, {2, 3}}), "shared-cores", {{"ok"}});
  expect_said(bound_job("host", {{0, 1}, {1, 2}, {0, 1, 2}}), "shared-cores", {{"ok"}});
  expect_said(bound_job("host", {{0}, {0}}), "shared-cores", {{"warning|c0||1 2"}});
  expect_said(bound_job("cuda", {{0, 1}, {0, 1}, {0, 1}, {2}}), "shared-cores", {{"stop|c0||3 4"}});
  expect_said(bound_job("host", {{0, 1}}), "single-core", {{"ok"}});
  // Two hardware threads of one core.
  expect_said(bound_job("host", {{0, 0}, {1, 2}}), "single-core", {{"warning|c0|rank 0|"}});
}

TEST(BlasThreadsCheck, ComparesWithCoresOfNodeAndRank) {
  JobFacts job = bound_job("host", {{0, 1}, {2, 3}});
  job.nodes[0].cores = 4;
  expect_said(job, "blas-threads",
              {{"ok", on_ranks(&CheckedRank::blas_threads, 2)},
               {"warning|c0||6 BLAS 4\nwarning|c0|every rank|3 BLAS 2",
                on_ranks(&CheckedRank::blas_threads, 3)}});
  // One thread a rank may share cores.
  job = bare_job("host", 1, 4);
  job.nodes[0].cores = 2;
  expect_said(job, "blas-threads",
              {{"ok"}, {"warning|c0||8 BLAS 2", on_ranks(&CheckedRank::blas_threads, 2)}});
}

TEST(QuotaAndSharedMemoryChecks, CompareWithRanksOfTheNode) {
  expect_said(bare_job("host", 1, 4), "cpu-quota",
              {{"ok", on_nodes(&CheckedNode::cpu_quota, 4)},
               {"warning|c0||2.5 CPUs 4", on_nodes(&CheckedNode::cpu_quota, 2.5)}});
  constexpr double mebibyte = 1024.0 * 1024;
  expect_said(bare_job("host", 1, 4), "shared-memory",
              {{"ok", on_nodes(&CheckedNode::shm_free, 256 * mebibyte)},
               {"warning", on_nodes(&CheckedNode::shm_free, 255 * mebibyte)}});
  // However many ranks: no more than is recommended for a container.
  expect_said(bare_job("host", 1, 64), "shared-memory",
              {{"ok", on_nodes(&CheckedNode::shm_free, 1024 * mebibyte)}});
}

TEST(LockedMemoryCheck, LeavesNodesWithoutAdaptersAlone) {
  JobFacts job = bare_job("host", 2, 1);
  add_ports(job);
  job.ranks[0].locked_memory_unlimited = true;
  job.ranks[1].locked_memory_limit = 65536;
  expect_said(job, "locked-memory",
              {{"warning|c1|every rank|64.0 KiB"},
               {"ok", [](JobFacts& j) { j.nodes[1].ports->clear(); }},
               {"not checked", on_nodes(&CheckedNode::ports, Ports{})}});
}

/// There powersave is the dynamic default.
TEST(CpuGovernorCheck, AsksActiveDriversForTheirPreference) {
  const auto preferring = [](const Counts& counts) {
    return on_nodes(&CheckedNode::energy_preferences, counts);
  };
  const Counts mixed{{"balance_performance", 5}, {"balance_power", 2}, {"power", 1}};
  JobFacts job = bare_job("host", 1, 1);
  job.nodes[0].governors = {{"powersave", 8}};
  for (const char* const driver : {"intel_pstate", "amd-pstate-epp"}) {
    SCOPED_TRACE(driver);
    job.nodes[0].frequency_driver = driver;
    expect_said(job, "cpu-governor",
                {{"ok"},
                 {"ok", preferring({{"balance_performance", 8}})},
                 {"warning|c0||3 8 CPUs energy_performance_preference", preferring(mixed)}});
  }
  job.nodes[0].frequency_driver = "acpi-cpufreq";
  expect_said(job, "cpu-governor", {{"warning|c0||8 8 CPUs", preferring(mixed)}});
}

constexpr const char* second = "warning|c0|GPU 1 (0000:02:00.0)|";

TEST(GpuLikenessChecks, CompareOnlyWithinAModel) {
  JobFacts job = gpu_job(1, 4);
  on_job_gpus(&GpuFacts::memory, 8e10)(job);
  gpu_at(job, 0, 3).memory = 4e10;
  gpu_at(job, 0, 3).name = "NVIDIA A100-PCIE-40GB";
  expect_said(job, "gpu-memory", {{"ok"}});
}

TEST(ApplicationClockCheck, OnlyTellsWhatAllAreSetTo) {
  JobFacts job = gpu_job(1, 2);
  on_job_gpus(&GpuFacts::sm_clock_application, 1.41e9)(job);
  on_job_gpus(&GpuFacts::sm_clock_max, 1.98e9)(job);
  EXPECT_EQ(said(job, "application-clock"), "ok|||1.41 GHz 1.98 GHz");
}

TEST(EccCheck, LeavesModelsAloneOnWhichItIsAChoice) {
  JobFacts job = gpu_job(1, 1);
  gpu_at(job, 0, 0).ecc = false;
  for (const auto& [name, says] : {std::pair{"NVIDIA GeForce RTX 4090", "ok"},
                                   {"NVIDIA RTX A4000", "ok"},
                                   {"NVIDIA RTX A1000", "ok"},
                                   {"NVIDIA L4", "warning"},
                                   {"NVIDIA A40", "warning"},
                                   {"Tesla V100-SXM2-16GB", "warning"}}) {
    SCOPED_TRACE(name);
    expect_said(job, "ecc", {{says, on_job_gpus(&GpuFacts::name, name)}});
  }
}

TEST(XidCheck, TellsHardwareFromMistakesOfPrograms) {
  const auto with = [](const std::vector<int>& codes) {
    return on_job_gpus(&GpuFacts::xids, codes);
  };
  const std::string place = "warning|c0|GPU 0 (0000:01:00.0)|";
  expect_said(gpu_job(1, 1), "xid",
              {{"ok", with({})},
               {"ok", with({13, 31, 43, 45})},
               {place + "79\n" + place + "149", with({31, 79, 149})}});
  for (const int code : {48, 63, 64, 74, 79, 92, 94, 95, 119, 120}) {
    JobFacts job = gpu_job(1, 1);
    gpu_at(job, 0, 0).xids = {code};
    expect_said(job, "xid", {{place + std::to_string(code)}});
    EXPECT_NE(results_of(job, "xid").front().what.find(": "), std::string::npos) << code;
  }
}

TEST(ComputeModeCheck, StopsOrWarnsWhereRanksMayNotCompute) {
  JobFacts job = gpu_job(1, 2);
  on_job_gpus(&GpuFacts::compute_mode, "exclusive process")(job);
  expect_said(job, "compute-mode", {{"ok"}});
  job.ranks[1].gpu = "GPU-0";
  expect_said(
      job, "compute-mode",
      {{"warning|c0|GPU 0 (0000:01:00.0)|2"},
       {"stop|c0|GPU 0 (0000:01:00.0)|", on_job_gpus(&GpuFacts::compute_mode, "prohibited")}});
}

TEST(OtherProcessesCheck, TellsThemFromTheJobsOwn) {
  using Pids = std::vector<std::int64_t>;
  const auto on_both = [](const Pids& one, const Pids& other) {
    return [=](JobFacts& job) {
      gpu_at(job, 0, 0).processes = one;
      gpu_at(job, 0, 1).processes = other;
    };
  };
  // In a container the driver's ids are not those that ranks know.
  expect_said(gpu_job(1, 2), "other-processes",
              {{std::string{second} + "7", on_both({1000}, {1001, 7})},
               {"not checked", on_both({51000}, {51001})},
               {std::string{second} + "2 1", on_both({51000}, {51001, 51002})}});
}

/// GPUs that no rank took may belong to another job.
TEST(GpuChecks, JudgeThoseThatTheJobTook) {
  JobFacts job = gpu_job(1, 2);
  on_job_gpus(&GpuFacts::ecc, true)(job);
  gpu_at(job, 0, 1).ecc = false;
  job.ranks.pop_back();
  expect_said(job, "ecc", {{"ok"}, {"warning", on_ranks(&CheckedRank::gpu, std::nullopt)}});
}

/// Four GPUs on each of two nodes, as fast as each other but for a little.
JobFacts measured_job() {
  JobFacts job = gpu_job(2, 4);
  for (CheckedRank& rank : job.ranks) {
    rank.gemm_rate = 6e14 + 1e12 * (rank.rank % 3);
    rank.neighbours = {{.rank = rank.rank ^ 1, .bandwidth = 3e11 + 1e9 * (rank.rank / 2 % 2)},
                       {.rank = (rank.rank + 4) % 8, .bandwidth = 4e10 + 1e8 * (rank.rank % 2)}};
  }
  return job;
}

/// Where all scatter, a value far below the median is nothing special.
TEST(GemmRateCheck, AllowsWhatHealthyGpusDifferByAndWhatAllScatterBy) {
  JobFacts job = measured_job();
  job.ranks[6].gemm_rate = 5.8e14;  // 3.5% below
  expect_said(job, "gemm-rate", {{"ok"}});
  const std::vector<double> rates{5.0e14, 5.4e14, 5.8e14, 6.0e14, 6.0e14, 6.2e14, 6.6e14, 7.0e14};
  for (std::size_t r = 0; r < rates.size(); ++r) job.ranks[r].gemm_rate = rates[r];
  expect_said(job, "gemm-rate", {{"ok"}});
}

TEST(GemmRateCheck, ComparesOnlyWithItsLike) {
  JobFacts job = measured_job();
  for (const std::size_t r : {0U, 4U}) {
    gpu_at(job, r / 4, 0).name = "NVIDIA A100-SXM4-80GB";
    job.ranks[r].gemm_rate = 2.5e14;
  }
  EXPECT_EQ(said(job, "gemm-rate"), "ok|||2 8");
  // Hosts by model and threads.
  job = bare_job("host", 1, 5);
  job.nodes[0].cpu_model = "EPYC";
  for (CheckedRank& rank : job.ranks) rank.gemm_rate = 1e12;
  job.ranks[4].gemm_rate = 0.8e12;
  EXPECT_EQ(said(job, "gemm-rate"), "warning|c0|rank 4|800 GFLOP/s 20.0% 1 TFLOP/s 5 1 BLAS");
  job.ranks[4].blas_threads = 2;
  expect_said(job, "gemm-rate", {{"ok"}});
}

TEST(GemmRateCheck, SaysWhyThereIsNone) {
  EXPECT_EQ(said(gpu_job(1, 3), "gemm-rate"), "not checked|||4");
  JobFacts job = gpu_job(1, 8);
  job.sniff_skipped = "ranks share GPUs";
  EXPECT_EQ(said(job, "gemm-rate"), "not checked|||");
}

/// Pairs of one node by what joins them: PCIe is no slow NVLink.
TEST(NeighbourBandwidthCheck, ComparesPairsByTheirLink) {
  JobFacts job = measured_job();
  for (CheckedNode& node : job.nodes) {
    node.peers = {{.i = 0, .j = 1, .peer_access = true, .link = "NVLink"},
                  {.i = 2, .j = 3, .peer_access = true, .link = "system"}};
  }
  for (const std::size_t r : {2U, 3U, 6U, 7U}) job.ranks[r].neighbours[0].bandwidth = 2e10;
  EXPECT_EQ(said(job, "neighbour-bandwidth"), "ok|||4 8");
}

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
               {"not checked", on_nodes(&CheckedNode::ports, Ports{})}});
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
       {"not checked|||", on_nodes(&CheckedNode::ports, Ports{})}});
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
  GpuFacts other = node.gpus->front();
  other.uuid = "GPU-1";
  other.pci_bus_id = "0000:02:00.0";
  other.pci_path = "pci0000:2a/0000:2a:02.0/0000:2c:00.0";
  node.gpus->push_back(other);
  job.ranks.push_back(job.ranks[0]);
  job.ranks[1].rank = job.ranks[1].local_rank = 1;
  job.ranks[1].gpu = "GPU-1";
  EXPECT_EQ(said(job, "port-rate"), "warning|c0|mlx5_1 port 1|200 Gbit/s 400 Gbit/s");
}

TEST(Naming, ReadsListsAsNcclDoes) {
  const auto naming = [](const char* list, const char* device) {
    return naming_of(list, port_up(device));
  };
  for (const char* const list : {"mlx5_1", "=mlx5_0, mlx5_1:1"}) {
    EXPECT_EQ(naming(list, "mlx5_1"), Naming::named) << list;
  }
  for (const char* const list : {"mlx5", "", "^mlx5_0", "^=mlx5"}) {
    EXPECT_EQ(naming(list, "mlx5_1"), Naming::usable) << list;
  }
  for (const char* const list : {"=mlx5", "mlx5_1:2", "^mlx5_1"}) {
    EXPECT_EQ(naming(list, "mlx5_1"), Naming::left_out) << list;
  }
  EXPECT_EQ(naming("mlx5_1", "mlx5_10"), Naming::usable);  // begins so, may be for storage
}

}  // namespace
}  // namespace isoscale::preflight
