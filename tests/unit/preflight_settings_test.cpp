// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

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

TEST(NcclFilesCheck, WarnsOfFilesThatAreNotThere) {
  JobFacts job = bare_job("cuda", 2, 1);
  EXPECT_EQ(results_of(job, "nccl-files").front().verdict, Verdict::ok);
  job.ranks[1].missing_files = {"NCCL_TOPO_FILE"};
  EXPECT_THAT(said(job, "nccl-files"), ElementsAre("warning|c1|every rank|NCCL_TOPO_FILE"));
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

/// Whether a path is there is found out where the rank runs; nothing is looked for along others.
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

}  // namespace
}  // namespace isoscale::preflight
