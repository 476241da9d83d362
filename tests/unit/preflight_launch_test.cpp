// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight/job_facts.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;
using ::testing::SizeIs;

TEST(DeviceCheck, StopsWhereItCannotBeHad) {
  JobFacts job = bare_job("cuda", 1, 1);
  job.ranks[0].versions["device"] = "cuda: NVIDIA L40S";
  EXPECT_THAT(said(job, "device"), ElementsAre("ok|||L40S"));
  job.device_problem = "there is no driver";
  EXPECT_THAT(said(job, "device"), ElementsAre("stop|||"));
  EXPECT_EQ(results_of(job, "device").front().what, "there is no driver");
}

TEST(DeviceCheck, SaysShortlyWhyTheHostWasChosen) {
  JobFacts job = bare_job("host", 1, 1);
  job.ranks[0].versions["device"] = "OpenBLAS 0.3.21";
  job.device_reason = "no GPU: there is no driver";
  job.ranks[0].launcher = {{"SLURM_GPUS_ON_NODE", 0}};
  job.ranks[0].environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  EXPECT_THAT(said(job, "device"), ElementsAre("ok|||0.3.21"));
  EXPECT_THAT(results_of(job, "device").front().what, Not(HasSubstr("there is no driver")));
}

TEST(DeviceCheck, WarnsWhereGpusWereMeant) {
  JobFacts chosen = bare_job("host", 1, 1);
  chosen.device_reason = "no GPU: there is no driver";
  JobFacts job = chosen;
  job.ranks[0].launcher = {{"SLURM_GPUS_ON_NODE", 4}};
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||SLURM_GPUS_ON_NODE 4"));
  EXPECT_THAT(results_of(job, "device").front().what, HasSubstr("there is no driver"));
  job = chosen;
  job.ranks[0].environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}};
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||CUDA_VISIBLE_DEVICES 0,1"));
  job = chosen;
  job.nodes[0].gpus.emplace(2);
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||c0 2 NVIDIA"));
  job.device_reason.reset();  // --device host
  EXPECT_EQ(results_of(job, "device").front().verdict, Verdict::ok);
}

TEST(WorldSizeCheck, ComparesWithTheLauncher) {
  JobFacts job = bare_job("host", 1, 2);
  EXPECT_THAT(said(job, "world-size"), ElementsAre("not checked|||"));
  for (CheckedRank& rank : job.ranks) rank.launcher = {{"SLURM_STEP_NUM_TASKS", 2}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("ok|||2"));
  for (CheckedRank& rank : job.ranks) rank.launcher = {{"SLURM_STEP_NUM_TASKS", 8}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("stop|c0|every rank|SLURM_STEP_NUM_TASKS 8 2"));
}

/// mpirun starts its daemons as a step of one task a node, whose variables ranks inherit.
TEST(WorldSizeCheck, BelievesMpirunBeforeSlurm) {
  JobFacts job = bare_job("host", 1, 4);
  for (CheckedRank& rank : job.ranks) {
    rank.launcher = {{"OMPI_COMM_WORLD_SIZE", 4}, {"SLURM_STEP_NUM_TASKS", 1}, {"SLURM_NTASKS", 8}};
  }
  EXPECT_EQ(results_of(job, "world-size").front().verdict, Verdict::ok);
}

/// In an allocation of many tasks a small job may be meant, so it is no stop.
TEST(WorldSizeCheck, WarnsOfTheAllocationAlone) {
  JobFacts job = bare_job("host", 1, 1);
  job.ranks[0].launcher = {{"SLURM_NTASKS", 8}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("warning|c0|every rank|SLURM_NTASKS 8 1"));
  job.ranks[0].launcher = {{"PMI_SIZE", 8}};
  EXPECT_EQ(results_of(job, "world-size").front().verdict, Verdict::stop);
}

TEST(RanksPerNodeCheck, WarnsOfUnlikeNodes) {
  JobFacts job = bare_job("host", 3, 2);
  EXPECT_THAT(said(job, "ranks-per-node"), ElementsAre("ok|||2 3"));
  job.ranks.pop_back();
  EXPECT_THAT(said(job, "ranks-per-node"), ElementsAre("warning|c2||1 2"));
}

TEST(GpusPerNodeCheck, StopsWhereRanksAreMore) {
  JobFacts job = gpu_job(2, 2);
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("ok|||"));
  job.nodes[1].gpus->pop_back();
  job.ranks[3].gpu = job.ranks[2].gpu;
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("stop|c1||1 GPU 2"));
  job.share_gpu = true;
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
}

TEST(GpusPerNodeCheck, BelievesRanksThatTookOnes) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].gpus->pop_back();  // hidden from NVML
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
  job.nodes[0].gpus->clear();  // all of them: nothing can be said
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::not_checked);
  for (CheckedRank& rank : job.ranks) rank.gpu.reset();
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("stop|c0||0 GPUs 2"));
}

TEST(GpusPerNodeCheck, WarnsOfIdleOnes) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].gpus->emplace_back().uuid = "GPU-x";
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("warning|c0||3 GPUs 2"));
  // Those of other jobs are seen by sysfs alone.
  job.nodes[0].gpus->back().uuid.clear();
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
}

TEST(DuplicateGpuCheck, StopsUnlessSharingIsWanted) {
  JobFacts job = gpu_job(1, 3);
  EXPECT_THAT(said(job, "duplicate-gpu"), ElementsAre("ok|||"));
  job.ranks[2].gpu = "GPU-0";
  EXPECT_THAT(said(job, "duplicate-gpu"), ElementsAre("stop|c0|GPU-0|0 2"));
  job.share_gpu = true;
  EXPECT_EQ(results_of(job, "duplicate-gpu").front().verdict, Verdict::ok);
}

/// The versions here are of the software that ranks are made of: some mismatches make a run hang or
/// give wrong results, the others only disturb it.
TEST(VersionChecks, StopOrWarnWhereRanksDiffer) {
  struct Case {
    const char* key;
    const char* check;
    Verdict verdict;
  };
  for (const Case& one :
       {Case{"isoscale", "isoscale-version", Verdict::stop},
        Case{"git", "isoscale-version", Verdict::stop}, Case{"nccl", "nccl-version", Verdict::stop},
        Case{"mpi", "mpi-version", Verdict::warning},
        Case{"cuda_driver", "cuda-version", Verdict::warning},
        Case{"cuda_runtime", "cuda-version", Verdict::warning},
        Case{"cublas", "cuda-version", Verdict::warning}}) {
    JobFacts job = bare_job("cuda", 3, 2);
    for (CheckedRank& rank : job.ranks) rank.versions[one.key] = "1.2.3";
    EXPECT_EQ(results_of(job, one.check).front().verdict, Verdict::ok) << one.key;
    job.ranks[2].versions[one.key] = job.ranks[3].versions[one.key] = "1.2.4";
    const auto results = results_of(job, one.check);
    ASSERT_EQ(results.size(), 1U) << one.key;
    EXPECT_EQ(results[0].verdict, one.verdict) << one.key;
    EXPECT_EQ(results[0].host, "c1");
    EXPECT_EQ(results[0].device, "every rank");
    EXPECT_THAT(numbers(results[0].what), testing::EndsWith("1.2.4 1.2.3"));
  }
}

/// Two nodes with InfiniBand; a variable of all ranks.
JobFacts job_with(const char* device, const std::string& variable, const std::string& value) {
  JobFacts job = bare_job(device, 2, 2);
  add_ports(job);
  for (CheckedRank& rank : job.ranks) rank.environment[variable] = value;
  return job;
}

struct Setting {
  const char* check;
  const char* variable;
  const char* bad;
  const char* good;
};
class BadSettings : public testing::TestWithParam<Setting> {};

TEST_P(BadSettings, AreWarnedOfWithTheirValue) {
  const auto& [check, variable, bad, good] = GetParam();
  const auto device = std::string_view{check} == "thread-settings" ? "host" : "cuda";
  EXPECT_THAT(said(job_with(device, variable, bad), check),
              ElementsAre(fmt::format("warning|c0 and c1|every rank|{}={}", variable, bad)));
  EXPECT_EQ(results_of(job_with(device, variable, good), check).front().verdict, Verdict::ok);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSettings,
    testing::Values(Setting{"nccl-transports", "NCCL_P2P_DISABLE", "1", "0"},
                    Setting{"nccl-transports", "NCCL_SHM_DISABLE", "1", "0"},
                    Setting{"nccl-transports", "NCCL_IB_DISABLE", "1", "0"},
                    Setting{"nccl-transports", "NCCL_NET", "Socket", "IB"},
                    Setting{"nccl-transports", "NCCL_NET", "socket", "ib"},
                    Setting{"nccl-transports", "NCCL_P2P_LEVEL", "LOC", "NVL"},
                    Setting{"nccl-transports", "NCCL_P2P_LEVEL", "0", "5"},
                    Setting{"nccl-transports", "NCCL_NET_GDR_LEVEL", "loc", "SYS"},
                    Setting{"nccl-transports", "NCCL_NET_GDR_LEVEL", "0", "PXB"},
                    Setting{"nccl-debug", "NCCL_DEBUG", "info", "warn"},
                    Setting{"nccl-debug", "NCCL_DEBUG", "INFO", "WARN"},
                    Setting{"nccl-debug", "NCCL_DEBUG", "TRACE", "VERSION"},
                    Setting{"nccl-interfaces", "NCCL_SOCKET_IFNAME", "lo", "^lo,docker0"},
                    Setting{"nccl-interfaces", "NCCL_SOCKET_IFNAME", "=lo", "eth0"},
                    Setting{"cuda-settings", "CUDA_LAUNCH_BLOCKING", "1", "0"},
                    Setting{"ucx-transports", "UCX_TLS", "tcp,sm,self", "rc_x,sm,self"},
                    Setting{"ucx-transports", "UCX_TLS", "^ib", "^tcp"},
                    Setting{"ucx-transports", "UCX_TLS", "sm,cuda", "all"},
                    Setting{"thread-settings", "OMP_NUM_THREADS", "8", "1"}));

TEST(NcclTransportsCheck, MayTurnOffWhatNodesDoNotHave) {
  JobFacts job = job_with("cuda", "NCCL_IB_DISABLE", "1");
  for (CheckedNode& node : job.nodes) node.ports->clear();
  EXPECT_EQ(results_of(job, "nccl-transports").front().verdict, Verdict::ok);
}

TEST(NcclChecks, SayNothingOfAJobOnTheHost) {
  const JobFacts job = job_with("host", "NCCL_P2P_DISABLE", "1");
  for (const char* const check : {"nccl-transports", "nccl-files", "nccl-debug", "nccl-choices",
                                  "nccl-interfaces", "nccl-plugins"}) {
    EXPECT_THAT(said(job, check), ElementsAre("not checked|||"));
  }
}

TEST(NcclChoicesCheck, TellsThemAndWarnsOfNone) {
  EXPECT_THAT(said(job_with("cuda", "NCCL_ALGO", "Ring"), "nccl-choices"),
              ElementsAre("ok|||NCCL_ALGO=Ring nccl.conf NCCL_CONF_FILE"));
  EXPECT_THAT(said(bare_job("cuda", 1, 1), "nccl-choices"),
              ElementsAre("ok|||nccl.conf NCCL_CONF_FILE"));
}

TEST(NcclInterfacesCheck, ReadsListsAsNcclDoes) {
  for (const char* const known :
       {"mlx5", "mlx5_0", "=mlx5_0", "mlx5_0:1", "=mlx5_0:1", "^mlx5_7", "^=mlx5_7"}) {
    EXPECT_EQ(results_of(job_with("cuda", "NCCL_IB_HCA", known), "nccl-interfaces").front().verdict,
              Verdict::ok)
        << known;
  }
  for (const char* const unknown : {"=mlx5", "mlx5_1", "mlx5_0:2", "bnxt"}) {
    EXPECT_EQ(
        results_of(job_with("cuda", "NCCL_IB_HCA", unknown), "nccl-interfaces").front().verdict,
        Verdict::warning)
        << unknown;
  }
  EXPECT_THAT(said(job_with("cuda", "NCCL_IB_HCA", "=mlx5_0,mlx5_9"), "nccl-interfaces"),
              ElementsAre("warning|c0 and c1|every rank|NCCL_IB_HCA mlx5_9"));
}

TEST(NcclPluginsCheck, WantsThemAlikeAndThoseThatAreNamed) {
  JobFacts job = job_with("cuda", "NCCL_NET_PLUGIN", "ofi");
  EXPECT_EQ(results_of(job, "nccl-plugins").front().verdict, Verdict::not_checked);
  for (CheckedNode& node : job.nodes) node.nccl_plugins = {"libnccl-net-ofi.so"};
  EXPECT_THAT(said(job, "nccl-plugins"), ElementsAre("ok|||libnccl-net-ofi.so"));
  job.nodes[1].nccl_plugins->clear();
  EXPECT_THAT(said(job, "nccl-plugins"), ElementsAre("warning|c1||libnccl-net-ofi.so",
                                                     "warning|c1|every rank|NCCL_NET_PLUGIN=ofi"));
  job = job_with("cuda", "NCCL_COLLNET_ENABLE", "1");
  for (CheckedNode& node : job.nodes) node.nccl_plugins.emplace();
  EXPECT_THAT(said(job, "nccl-plugins"),
              ElementsAre("warning|c0 and c1|every rank|NCCL_COLLNET_ENABLE"));
  for (CheckedNode& node : job.nodes) node.nccl_plugins = {"libnccl-net.so.0"};
  EXPECT_EQ(results_of(job, "nccl-plugins").front().verdict, Verdict::ok);
}

/// The rank finds out where it runs whether a path exists; a path is not searched for along others.
TEST(NcclPluginsCheck, KnowsPluginsByPathAndNone) {
  for (const char* const value : {"none", "/opt/x/libnccl-net-x.so", "libnccl-net-ofi.so"}) {
    JobFacts job = job_with("cuda", "NCCL_NET_PLUGIN", value);
    for (CheckedNode& node : job.nodes) node.nccl_plugins = {"libnccl-net-ofi.so"};
    EXPECT_EQ(results_of(job, "nccl-plugins").front().verdict, Verdict::ok) << value;
  }
}

TEST(EqualSettingsCheck, LetsEachRankHaveItsOwnAdapters) {
  JobFacts job = bare_job("cuda", 2, 2);
  for (CheckedRank& rank : job.ranks) {
    rank.environment["NCCL_IB_HCA"] = fmt::format("=mlx5_{}", rank.local_rank);
    rank.environment["UCX_NET_DEVICES"] = fmt::format("mlx5_{}:1", rank.local_rank);
  }
  EXPECT_EQ(results_of(job, "equal-settings").front().verdict, Verdict::ok);
  job.ranks[3].environment["NCCL_IB_HCA"] = "=mlx5_0,mlx5_1";
  EXPECT_THAT(said(job, "equal-settings"),
              ElementsAre("warning|c1|rank 3|NCCL_IB_HCA 2 NCCL_IB_HCA 1"));
  job.ranks[3].environment.erase("NCCL_IB_HCA");
  EXPECT_THAT(said(job, "equal-settings"),
              ElementsAre("warning|c1|rank 3|NCCL_IB_HCA NCCL_IB_HCA 1"));
}

TEST(EqualSettingsCheck, WarnsOfRanksThatDiffer) {
  JobFacts job = job_with("cuda", "NCCL_ALGO", "Ring");
  for (CheckedRank& rank : job.ranks) {
    rank.environment["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", rank.local_rank);
  }
  EXPECT_THAT(said(job, "equal-settings"), ElementsAre("ok|||"));
  for (CheckedRank& rank : job.ranks) {
    if (rank.node == 1) rank.environment.erase("NCCL_ALGO");
  }
  EXPECT_THAT(said(job, "equal-settings"),
              ElementsAre("warning|c1|every rank|NCCL_ALGO NCCL_ALGO=Ring"));
  job.ranks[3].environment["NCCL_ALGO"] = "Tree";
  EXPECT_EQ(results_of(job, "equal-settings").size(), 2U);
}

// The tests from here on merge the facts that ranks report into one job, and check jobs whose ranks
// see one GPU each.

TEST(MergedFacts, AreByIndexAndNumber) {
  JobFacts a = bare_job("host", 2, 1), b = bare_job("cuda", 1, 1);
  std::swap(a.nodes[0], a.nodes[1]);
  std::swap(a.ranks[0], a.ranks[1]);
  b.nodes[0].node = 2;
  b.nodes[0].host = "c2";
  b.nodes.push_back(a.nodes[0]);
  b.ranks[0].rank = 2;
  const JobFacts job = merge({std::move(a), std::move(b)});
  EXPECT_EQ(job.device, "host");
  ASSERT_EQ(job.nodes.size(), 3U);
  EXPECT_EQ(job.nodes[0].host, "c0");
  EXPECT_EQ(job.nodes[2].host, "c2");
  ASSERT_EQ(job.ranks.size(), 3U);
  EXPECT_EQ(job.ranks[0].rank, 0);
  EXPECT_EQ(job.ranks[2].rank, 2);
  EXPECT_TRUE(merge({}).ranks.empty());
}

/// A GPU as the bus shows it to a rank that may not use it.
GpuFacts on_the_bus(const GpuFacts& gpu) {
  GpuFacts bare;
  bare.pci_bus_id = gpu.pci_bus_id;
  bare.xids = std::vector<int>{79};
  return bare;
}

/// Parts of ranks on one node, each of which sees its own GPU alone.
std::vector<JobFacts> isolated_parts(int ranks) {
  JobFacts job = gpu_job(1, ranks);
  set_gpus(job, &GpuFacts::ecc, true);
  set_gpus(job, &GpuFacts::nvlink_peers, std::vector<std::string>{"0000:07:00.0"});
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
    node.gpus->push_back(on_the_bus(gpu_at(job, 0, static_cast<std::size_t>(j))));
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
}

TEST(MergedFacts, KeepWhatTheFirstRankSawItself) {
  JobFacts first = gpu_job(1, 2);
  set_gpus(first, &GpuFacts::ecc, true);
  JobFacts second;
  GpuFacts again = gpu_at(first, 0, 1);
  again.ecc = false;
  second.nodes.emplace_back().gpus = {again};
  const JobFacts job = merge({first, second});
  ASSERT_THAT(job.nodes[0].gpus, Optional(SizeIs(2)));
  EXPECT_EQ(job.nodes[0].gpus->at(1).ecc, true);
}

TEST(MergedFacts, TakeGpusOfNodesWithoutABus) {
  std::vector<JobFacts> parts = isolated_parts(2);
  parts[0].nodes[0].gpus->pop_back();
  parts[0].nodes[0].peers.clear();
  EXPECT_THAT(merge(std::move(parts)).nodes[0].gpus, Optional(SizeIs(2)));
}

/// The fault of a GPU that only another rank sees is found.
TEST(IsolatedRanks, AreJudgedOnAllTheirGpus) {
  std::vector<JobFacts> parts = isolated_parts(2);
  EXPECT_THAT(said(merge(parts), "ecc"), ElementsAre("ok|||"));
  EXPECT_EQ(results_of(merge(parts), "gpus-per-node").front().verdict, Verdict::ok);
  parts[1].nodes[0].gpus->front().ecc = false;
  EXPECT_THAT(said(merge(parts), "ecc"), ElementsAre("warning|c0|GPU 1 (0000:02:00.0)|"));
}

TEST(IsolatedRanks, LeaveUnknownWhatNobodyLookedAt) {
  std::vector<JobFacts> parts = isolated_parts(3);
  parts[2].nodes.clear();
  const JobFacts job = merge(parts);
  EXPECT_THAT(said(job, "ecc"), ElementsAre("ok|||1 3"));
  EXPECT_THAT(said(job, "nvlink-pairs"), ElementsAre("ok|||2 3"));
}

TEST(GpuVisibilityCheck, WarnsWhereRanksMayNotUseEachOthers) {
  JobFacts job = merge(isolated_parts(4));
  EXPECT_THAT(said(job, "gpu-visibility"), ElementsAre("warning|c0|every rank|1 4 GPUs"));
  EXPECT_THAT(results_of(job, "gpu-visibility").front().fix, testing::HasSubstr("--gpu-bind=none"));
  const std::vector<std::string> all{"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-9"};
  for (CheckedRank& rank : job.ranks) rank.visible_gpus = all;
  EXPECT_THAT(said(job, "gpu-visibility"), ElementsAre("ok|||"));
  for (CheckedRank& rank : job.ranks) rank.visible_gpus.reset();
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::not_checked);
  // An instance of a partitioned GPU is not among those that NVML lists.
  job.ranks[0].visible_gpus = {"GPU-whole"};
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::not_checked);
}

TEST(GpuVisibilityCheck, IsFineWithOneGpuOnEachNode) {
  JobFacts job = gpu_job(2, 1);
  for (CheckedRank& rank : job.ranks) rank.visible_gpus = {*rank.gpu};
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::ok);
}

}  // namespace
}  // namespace isoscale::preflight
