// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using Numbers = decltype(CheckedRank::launcher);
using Strings = std::vector<std::string>;

TEST(DeviceCheck, StopsWhereItCannotBeHadAndWarnsWhereGpusWereMeantAndTheHostWasChosen) {
  JobFacts job = bare_job("cuda", 1, 1);
  job.ranks[0].versions["device"] = "cuda: NVIDIA L40S";
  EXPECT_EQ(said(job, "device"), "ok|||L40S");
  job.device_problem = "no_driver";
  EXPECT_EQ(said(job, "device"), "stop|||no_driver");
  job = bare_job("host", 1, 1);
  job.device_reason = "no_driver";
  job.ranks[0].launcher["SLURM_GPUS_ON_NODE"] = 0;
  job.ranks[0].environment["CUDA_VISIBLE_DEVICES"] = "";
  const std::optional<std::vector<GpuFacts>> gpus{2};
  expect_said(job, "device",
              {{"ok|||"},
               {"warning|||SLURM_GPUS_ON_NODE 4 no_driver",
                on_ranks(&CheckedRank::launcher, Numbers{{"SLURM_GPUS_ON_NODE", 4}})},
               {"warning|||CUDA_VISIBLE_DEVICES 0,1 no_driver",
                on_environment("CUDA_VISIBLE_DEVICES", "0,1")},
               {"warning|||c0 2 NVIDIA no_driver", on_nodes(&CheckedNode::gpus, gpus)}});
  job.device_reason.reset();  // --device host
  expect_said(job, "device", {{"ok", on_nodes(&CheckedNode::gpus, gpus)}});
}

/// mpirun starts its daemons as a step of one task a node, whose variables ranks inherit. In an
/// allocation of many tasks a small job may be meant, so it is no stop.
TEST(WorldSizeCheck, BelievesMpirunBeforeSlurmAndTheAllocationLeast) {
  const auto with = [](const Numbers& known) { return on_ranks(&CheckedRank::launcher, known); };
  expect_said(bare_job("host", 1, 4), "world-size",
              {{"ok", with({{"OMPI_COMM_WORLD_SIZE", 4}, {"SLURM_STEP_NUM_TASKS", 1}})},
               {"ok", with({{"OMPI_COMM_WORLD_SIZE", 4}, {"SLURM_NTASKS", 8}})},
               {"warning|c0|every rank|SLURM_NTASKS 8 4", with({{"SLURM_NTASKS", 8}})},
               {"stop", with({{"PMI_SIZE", 8}})}});
}

TEST(RanksPerNodeCheck, WarnsOfUnlikeNodes) {
  JobFacts job = bare_job("host", 3, 2);
  EXPECT_EQ(said(job, "ranks-per-node"), "ok|||2 3");
  job.ranks.pop_back();
  EXPECT_EQ(said(job, "ranks-per-node"), "warning|c2||1 2");
}

TEST(GpusPerNodeCheck, StopsWhereRanksAreMore) {
  JobFacts job = gpu_job(2, 2);
  EXPECT_EQ(said(job, "gpus-per-node"), "ok|||");
  job.nodes[1].gpus->pop_back();
  job.ranks[3].gpu = job.ranks[2].gpu;
  EXPECT_EQ(said(job, "gpus-per-node"), "stop|c1||1 GPU 2");
  EXPECT_EQ(said(job, "duplicate-gpu"), "stop|c1|GPU-2|2 3");
  job.share_gpu = true;
  expect_said(job, "gpus-per-node", {{"ok"}});
  expect_said(job, "duplicate-gpu", {{"ok"}});
}

TEST(GpusPerNodeCheck, BelievesRanksThatTookOnesAndWarnsOfIdleOnes) {
  JobFacts job = gpu_job(1, 2);
  GpuFacts& idle = job.nodes[0].gpus->emplace_back();  // without UUID: of another job, in sysfs
  expect_said(job, "gpus-per-node", {{"ok"}});
  idle.uuid = "GPU-x";
  EXPECT_EQ(said(job, "gpus-per-node"), "warning|c0||3 GPUs 2");
  job.nodes[0].gpus->resize(1);  // one is hidden from NVML
  expect_said(job, "gpus-per-node", {{"ok"}});
  job.nodes[0].gpus->clear();  // all of them: nothing can be said
  expect_said(job, "gpus-per-node",
              {{"not checked"}, {"stop|c0||0 GPUs 2", on_ranks(&CheckedRank::gpu, std::nullopt)}});
}

/// Two nodes with InfiniBand; a variable of all ranks.
JobFacts job_with(const char* device, const std::string& name, const std::string& value) {
  JobFacts job = bare_job(device, 2, 2);
  add_ports(job);
  on_environment(name, value)(job);
  return job;
}

TEST(BadSettings, AreWarnedOfWithTheirValue) {
  for (const auto& [check, setting, bad, good] :
       {std::tuple{"nccl-transports", "NCCL_P2P_DISABLE", "1", "0"},
        {"nccl-transports", "NCCL_SHM_DISABLE", "1", "0"},
        {"nccl-transports", "NCCL_IB_DISABLE", "1", "0"},
        {"nccl-transports", "NCCL_NET", "Socket", "IB"},
        {"nccl-transports", "NCCL_NET", "socket", "ib"},
        {"nccl-transports", "NCCL_P2P_LEVEL", "LOC", "NVL"},
        {"nccl-transports", "NCCL_P2P_LEVEL", "0", "5"},
        {"nccl-transports", "NCCL_NET_GDR_LEVEL", "loc", "SYS"},
        {"nccl-transports", "NCCL_NET_GDR_LEVEL", "0", "PXB"},
        {"nccl-debug", "NCCL_DEBUG", "info", "warn"},
        {"nccl-debug", "NCCL_DEBUG", "INFO", "WARN"},
        {"nccl-debug", "NCCL_DEBUG", "TRACE", "VERSION"},
        {"nccl-interfaces", "NCCL_SOCKET_IFNAME", "lo", "^lo,docker0"},
        {"nccl-interfaces", "NCCL_SOCKET_IFNAME", "=lo", "eth0"},
        {"cuda-settings", "CUDA_LAUNCH_BLOCKING", "1", "0"},
        {"ucx-transports", "UCX_TLS", "tcp,sm,self", "rc_x,sm,self"},
        {"ucx-transports", "UCX_TLS", "^ib", "^tcp"},
        {"ucx-transports", "UCX_TLS", "sm,cuda", "all"},
        {"thread-settings", "OMP_NUM_THREADS", "8", "1"}}) {
    const auto device = std::string_view{check} == "thread-settings" ? "host" : "cuda";
    EXPECT_EQ(said(job_with(device, setting, bad), check),
              fmt::format("warning|c0 and c1|every rank|{}={}", setting, bad));
    expect_said(job_with(device, setting, good), check, {{"ok"}});
  }
}

TEST(NcclTransportsCheck, MayTurnOffWhatNodesDoNotHave) {
  JobFacts job = job_with("cuda", "NCCL_IB_DISABLE", "1");
  for (CheckedNode& node : job.nodes) node.ports->clear();
  expect_said(job, "nccl-transports", {{"ok"}});
}

TEST(NcclChecks, SayNothingOfAJobOnTheHost) {
  const JobFacts job = job_with("host", "NCCL_P2P_DISABLE", "1");
  for (const char* const check : {"nccl-transports", "nccl-files", "nccl-debug", "nccl-choices",
                                  "nccl-interfaces", "nccl-plugins"}) {
    EXPECT_EQ(said(job, check), "not checked|||");
  }
}

TEST(NcclChoicesCheck, TellsThemAndWarnsOfNone) {
  EXPECT_EQ(said(job_with("cuda", "NCCL_ALGO", "Ring"), "nccl-choices"),
            "ok|||NCCL_ALGO=Ring nccl.conf NCCL_CONF_FILE");
  EXPECT_EQ(said(bare_job("cuda", 1, 1), "nccl-choices"), "ok|||nccl.conf NCCL_CONF_FILE");
}

TEST(NcclInterfacesCheck, ReadsListsAsNcclDoes) {
  for (const char* const known :
       {"mlx5", "mlx5_0", "=mlx5_0", "mlx5_0:1", "=mlx5_0:1", "^mlx5_7", "^=mlx5_7"}) {
    expect_said(job_with("cuda", "NCCL_IB_HCA", known), "nccl-interfaces", {{"ok"}});
  }
  for (const char* const unknown : {"=mlx5", "mlx5_1", "mlx5_0:2", "bnxt"}) {
    expect_said(job_with("cuda", "NCCL_IB_HCA", unknown), "nccl-interfaces", {{"warning"}});
  }
  EXPECT_EQ(said(job_with("cuda", "NCCL_IB_HCA", "=mlx5_0,mlx5_9"), "nccl-interfaces"),
            "warning|c0 and c1|every rank|NCCL_IB_HCA mlx5_9");
}

/// The rank finds out where it runs whether a path exists; a path is not searched for along others.
TEST(NcclPluginsCheck, WantsThemAlikeAndThoseThatAreNamed) {
  const auto found = [](const Strings& libraries) {
    return on_nodes(&CheckedNode::nccl_plugins, libraries);
  };
  const auto on_one_node = [](JobFacts& job) {
    job.nodes[0].nccl_plugins = {"libnccl-net-ofi.so"};
    job.nodes[1].nccl_plugins.emplace();
  };
  expect_said(
      job_with("cuda", "NCCL_NET_PLUGIN", "ofi"), "nccl-plugins",
      {{"not checked"},
       {"ok|||libnccl-net-ofi.so", found({"libnccl-net-ofi.so"})},
       {"warning|c1||libnccl-net-ofi.so\nwarning|c1|every rank|NCCL_NET_PLUGIN=ofi", on_one_node}});
  expect_said(job_with("cuda", "NCCL_COLLNET_ENABLE", "1"), "nccl-plugins",
              {{"warning|c0 and c1|every rank|NCCL_COLLNET_ENABLE", found({})},
               {"ok", found({"libnccl-net.so.0"})}});
  for (const char* const value : {"none", "/opt/x/libnccl-net-x.so", "libnccl-net-ofi.so"}) {
    expect_said(job_with("cuda", "NCCL_NET_PLUGIN", value), "nccl-plugins",
                {{"ok", found({"libnccl-net-ofi.so"})}});
  }
}

TEST(EqualSettingsCheck, WarnsOfRanksThatDifferButLetsEachHaveItsOwnAdapters) {
  JobFacts job = bare_job("cuda", 2, 2);
  for (CheckedRank& rank : job.ranks) {
    rank.environment["NCCL_IB_HCA"] = fmt::format("=mlx5_{}", rank.local_rank);
    rank.environment["UCX_NET_DEVICES"] = fmt::format("mlx5_{}:1", rank.local_rank);
  }
  expect_said(job, "equal-settings",
              {{"ok"},
               {"warning|c1|rank 3|NCCL_IB_HCA 2 NCCL_IB_HCA 1",
                [](JobFacts& j) { j.ranks[3].environment["NCCL_IB_HCA"] = "=mlx5_0,mlx5_1"; }},
               {"warning|c1|rank 3|NCCL_IB_HCA NCCL_IB_HCA 1",
                [](JobFacts& j) { j.ranks[3].environment.erase("NCCL_IB_HCA"); }}});
  job = job_with("cuda", "NCCL_ALGO", "Ring");
  for (CheckedRank& rank : job.ranks) {
    rank.environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", rank.local_rank);
  }
  EXPECT_EQ(said(job, "equal-settings"), "ok|||");
  for (const std::size_t r : {2U, 3U}) job.ranks[r].environment.erase("NCCL_ALGO");
  EXPECT_EQ(said(job, "equal-settings"), "warning|c1|every rank|NCCL_ALGO NCCL_ALGO=Ring");
  job.ranks[3].environment["NCCL_ALGO"] = "Tree";
  EXPECT_THAT(results_of(job, "equal-settings"), SizeIs(2));
}

TEST(MergedFacts, AreByIndexAndNumber) {
  JobFacts a = bare_job("host", 2, 1), b = bare_job("cuda", 1, 1);
  std::swap(a.nodes[0], a.nodes[1]);
  std::swap(a.ranks[0], a.ranks[1]);
  b.nodes[0].node = b.ranks[0].rank = 2;
  b.nodes[0].host = "c2";
  b.nodes.push_back(a.nodes[0]);
  const JobFacts job = merge({std::move(a), std::move(b)});
  EXPECT_EQ(job.device, "host");
  ASSERT_THAT(job.nodes, SizeIs(3));
  EXPECT_EQ(job.nodes[0].host, "c0");
  EXPECT_EQ(job.nodes[2].host, "c2");
  ASSERT_THAT(job.ranks, SizeIs(3));
  EXPECT_EQ(job.ranks[0].rank, 0);
  EXPECT_EQ(job.ranks[2].rank, 2);
  EXPECT_TRUE(merge({}).ranks.empty());
}

/// Parts of ranks on one node, each of which sees its own GPU alone.
std::vector<JobFacts> isolated_parts(int ranks) {
  JobFacts job = gpu_job(1, ranks);
  on_job_gpus(&GpuFacts::ecc, true)(job);
  on_job_gpus(&GpuFacts::nvlink_peers, std::vector<std::string>{"0000:07:00.0"})(job);
  std::vector<JobFacts> parts;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    JobFacts& part = parts.emplace_back();
    part.device = "cuda";
    part.ranks = {job.ranks[r]};
    part.ranks[0].visible_gpus = {*job.ranks[r].gpu};
    part.nodes.emplace_back().gpus = {gpu_at(job, 0, r)};
  }
  CheckedNode& node = parts[0].nodes[0];
  node.host = "c0";
  for (int j = 1; j < ranks; ++j) {
    GpuFacts& other = node.gpus->emplace_back();  // as the bus shows it to who may not use it
    other.pci_bus_id = gpu_at(job, 0, static_cast<std::size_t>(j)).pci_bus_id;
    other.xids = {79};
    for (int i = 0; i < j; ++i)
      node.peers.push_back({.i = i, .j = j, .peer_access = {}, .link = "system"});
  }
  return parts;
}

TEST(MergedFacts, HaveGpusThatTheFirstRankMayNotUse) {
  const JobFacts job = merge(isolated_parts(3));
  ASSERT_THAT(job.nodes, SizeIs(1));
  ASSERT_THAT(job.nodes[0].gpus, Optional(SizeIs(3)));
  for (std::size_t g = 0; g < 3; ++g) {
    const GpuFacts& gpu = job.nodes[0].gpus->at(g);
    EXPECT_EQ(gpu.uuid, fmt::format("GPU-{}", g));
    EXPECT_EQ(gpu.ecc, true);
    const std::vector<int> none{}, fallen{79};
    EXPECT_EQ(gpu.xids.value_or(none), g == 0 ? none : fallen);
  }
  for (const CheckedPeers& peers : job.nodes[0].peers) EXPECT_EQ(peers.link, "NVLink");
  EXPECT_EQ(job.nodes[0].host, "c0");
  // The first rank sees no bus.
  std::vector<JobFacts> parts = isolated_parts(2);
  parts[0].nodes[0].gpus->pop_back();
  parts[0].nodes[0].peers.clear();
  EXPECT_THAT(merge(std::move(parts)).nodes[0].gpus, Optional(SizeIs(2)));
}

TEST(MergedFacts, KeepWhatTheFirstRankSawItself) {
  JobFacts first = gpu_job(1, 2), second;
  on_job_gpus(&GpuFacts::ecc, true)(first);
  second.nodes.emplace_back().gpus = {gpu_at(first, 0, 1)};
  gpu_at(second, 0, 0).ecc = false;
  const JobFacts job = merge({first, second});
  ASSERT_THAT(job.nodes[0].gpus, Optional(SizeIs(2)));
  EXPECT_EQ(job.nodes[0].gpus->at(1).ecc, true);
}

/// The fault of a GPU that only another rank sees is found, and what nobody looked at is unknown.
TEST(IsolatedRanks, AreJudgedOnAllTheirGpus) {
  std::vector<JobFacts> parts = isolated_parts(2);
  EXPECT_EQ(said(merge(parts), "ecc"), "ok|||");
  expect_said(merge(parts), "gpus-per-node", {{"ok"}});
  parts[1].nodes[0].gpus->front().ecc = false;
  EXPECT_EQ(said(merge(parts), "ecc"), "warning|c0|GPU 1 (0000:02:00.0)|");
  parts = isolated_parts(3);
  parts[2].nodes.clear();
  EXPECT_EQ(said(merge(parts), "ecc"), "ok|||1 3");
  EXPECT_EQ(said(merge(parts), "nvlink-pairs"), "ok|||2 3");
}

TEST(GpuVisibilityCheck, WarnsWhereRanksMayNotUseEachOthers) {
  const JobFacts job = merge(isolated_parts(4));
  EXPECT_THAT(results_of(job, "gpu-visibility").front().fix, HasSubstr("--gpu-bind=none"));
  const auto see = [](const std::optional<Strings>& seen) {
    return on_ranks(&CheckedRank::visible_gpus, seen);
  };
  // An instance of a partitioned GPU is not among those that NVML lists.
  const auto instance = [&](JobFacts& j) {
    see(std::nullopt)(j);
    j.ranks[0].visible_gpus = {"GPU-whole"};
  };
  expect_said(job, "gpu-visibility",
              {{"warning|c0|every rank|1 4 GPUs"},
               {"ok|||", see(Strings{"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-9"})},
               {"not checked", see(std::nullopt)},
               {"not checked", instance}});
  JobFacts apart = gpu_job(2, 1);
  for (CheckedRank& rank : apart.ranks) rank.visible_gpus = {*rank.gpu};
  expect_said(apart, "gpu-visibility", {{"ok"}});
}

}  // namespace
}  // namespace isoscale::preflight
