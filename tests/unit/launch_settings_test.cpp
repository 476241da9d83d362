// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::JoinedLaunches;
using samples::launch_of;
using testing::HasSubstr;

TEST(Settings, WhatALaunchWasToldKeepsApartAndIsNamed) {
  const std::string plain = "fill = \"idle\"\nblas_threads = 1\n";
  const auto joined_with = [&](const std::string& config) {
    std::vector<results::RunData> runs{launch_of("a", 1, 2, 0.2), launch_of("b", 1, 2, 0.2)};
    runs[0].config_toml = plain;
    runs[1].config_toml = config;
    return JoinedLaunches{std::move(runs)}.joined;
  };
  EXPECT_EQ(joined_with(plain + "output = \"other.h5\"\nprecision = \"0.1\"\n").curves.size(), 1U);
  EXPECT_EQ(joined_with("").curves.size(), 2U) << "it cannot be known";
  const auto why = [&](const std::string& config) {
    const Joined joined = joined_with(config);
    return joined.curves.size() == 2 ? joined.curves[0].apart.at(0) : "joined";
  };
  EXPECT_EQ(why("fill = \"replicas\"\n"), "launch 2: setting fill: idle here, replicas there");
  EXPECT_EQ(why(plain + "graph = true\n"), "launch 2: setting graph: off here, on there");
  EXPECT_EQ(why("blas_threads = 4\n"), "launch 2: setting blas_threads: 1 here, 4 there");
  EXPECT_EQ(why(plain + "host_streams = \"threads\"\n"),
            "launch 2: setting host_streams: auto here, threads there");
  EXPECT_EQ(why("gemm_algorithms = \"a.h5\"\n"),
            "launch 2: setting gemm_algorithms: chosen here, a.h5 there");
  const Joined filled = joined_with("fill = \"replicas\"\n");
  EXPECT_THAT(filled.curves[1].curve.title, HasSubstr("packed, fill=replicas"));
  EXPECT_NE(filled.curves[0].fingerprint, filled.curves[1].fingerprint);
}

TEST(Settings, AGraphThatPlayedKeepsApartWithoutAConfiguration) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 0.2), launch_of("b", 1, 2, 0.2)};
  runs[1].points[0].graph = "on";
  EXPECT_EQ(JoinedLaunches{std::move(runs)}.joined.curves.size(), 2U);
}

TEST(Settings, SettingsOfCommunicationAndThreadsKeepApartAndJobsDoNot) {
  const auto why = [](const char* name, const char* value) {
    std::vector<results::RunData> runs{launch_of("a", 1, 2, 0.2), launch_of("b", 1, 2, 0.2)};
    runs[0].environment = {{"OMPI_MCA_rmaps_base_mapping_policy", "ppr:2:node"}};
    runs[1].environment = {{"OMPI_MCA_rmaps_base_mapping_policy", "ppr:4:node"}, {name, value}};
    const Joined joined = JoinedLaunches{std::move(runs)}.joined;
    return joined.curves.size() == 2 ? joined.curves[0].apart.at(0) : "joined";
  };
  EXPECT_EQ(why("NCCL_ALGO", "Ring"), "launch 2: NCCL_ALGO: unset here, Ring there");
  for (const char* const name : {"UCX_TLS", "OMPI_MCA_btl", "FI_PROVIDER", "OMP_NUM_THREADS",
                                 "CUDA_DEVICE_MAX_CONNECTIONS"}) {
    EXPECT_THAT(why(name, "x"), HasSubstr(std::string{name} + ": unset here, x there"));
  }
  for (const char* const name : {"SLURM_JOB_ID", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE",
                                 "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "NCCL_HOSTID"}) {
    EXPECT_EQ(why(name, "7"), "joined") << name;
  }
}

TEST(Settings, OfAConfigurationThatCannotBeReadAreNotKnown) {
  results::RunData run;
  run.config_toml = "fill = [";
  EXPECT_TRUE(settings_of(run).empty());
}

}  // namespace
}  // namespace isoscale::analysis
