// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "preflight/job_facts.hpp"

namespace isoscale::preflight {
namespace {

using nlohmann::json;

/// A job whose every field is there and has not its default.
constexpr const char* complete_job = R"({
  "device": "cuda", "share_gpu": true, "world": 4, "device_problem": "no driver",
  "device_reason": "a GPU was found", "sniff_skipped": "ranks share GPUs",
  "nodes": [{
    "node": 1, "host": "gpu-b", "cpu_model": "Xeon", "os": "Linux 5.15", "cores": 112,
    "cpu_quota": 4.5, "memory": 2.16417e12, "shm_size": 1.08e12, "shm_free": 1.07e12,
    "numa_cpus": {"0": [0, 1], "1": [2, 3]}, "governors": {"performance": 3, "powersave": 1},
    "frequency_driver": "intel_pstate", "energy_preferences": {"balance_performance": 4},
    "iommu_translates": false, "acs": true, "nvidia_peermem": true, "gdrcopy": false,
    "dmabuf": true, "nccl_plugins": ["libnccl-net.so"], "gpus_lost": 0,
    "gpus": [{
      "uuid": "GPU-5a2e91c4", "pci_bus_id": "0000:1b:00.0", "name": "NVIDIA H100",
      "driver": "580.82.07", "vbios": "96.00.A5.00.01", "compute_mode": "default",
      "memory": 85520809984.0, "memory_used": 1241513984.0, "sm_clock": 1.41e9,
      "sm_clock_max": 1.98e9, "sm_clock_application": 1.7e9, "memory_clock_max": 2.619e9,
      "power_limit": 650.5, "power_limit_default": 700.0,
      "throttle_reasons": ["hardware slowdown"], "ecc": true, "mig": false, "persistence": true,
      "ecc_uncorrected": 0, "remapped_rows": 1, "remap_pending": false, "remap_failed": true,
      "retired_pages": 12, "xids": [31, 94], "processes": [41200, 5000000000],
      "nvlinks_active": 16, "nvlinks_inactive": 2, "nvlink_peers": ["0000:07:00.0"],
      "fabric": "7c1f.32766", "fabric_state": "completed", "pcie_generation": 1,
      "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16, "numa_node": 0,
      "pci_path": "pci0000:15/0000:15:01.0/0000:1b:00.0"}, {}],
    "peers": [{"i": 1, "j": 2, "peer_access": false, "link": "system"}],
    "ports": [{
      "device": "mlx5_0", "port": 2, "link_layer": "InfiniBand", "state": "ACTIVE",
      "physical_state": "LinkUp", "rate": 4e11, "link_downed": 0, "symbol_errors": 90211,
      "pcie_generation": 4, "pcie_generation_max": 5, "pcie_width": 8, "pcie_width_max": 16,
      "numa_node": 1, "pci_path": "pci0000:3d/0000:40:00.0"}]}],
  "ranks": [{
    "rank": 3, "node": 1, "local_rank": 1, "pid": 41203, "cpus": [0, 1, 112], "cores": [0, 1],
    "gpu": "GPU-5a2e91c4", "visible_gpus": [], "blas_threads": 16, "locked_memory_limit": 65536.0,
    "locked_memory_unlimited": true, "versions": {"nccl": "2.27.7"},
    "environment": {"NCCL_DEBUG": ""}, "missing_files": ["NCCL_TOPO_FILE"],
    "launcher": {"SLURM_NTASKS": 5000000000}, "gemm_rate": 6.8e14,
    "neighbours": [{"rank": 1, "bandwidth": 361000000000.5}, {"rank": 2}]}]})";

/// Writing loses nothing that was read: numbers, texts, what is absent and what is empty.
TEST(JobFactsJson, IsTheSameAfterReadingAndWriting) {
  const json before = json::parse(complete_job);
  const json after = json::parse(to_json(job_facts_from_json(complete_job)));
  EXPECT_EQ(after, before) << json::diff(before, after);
}

TEST(JobFactsJson, KeepsAbsentApartFromEmptyAndFromZero) {
  JobFacts job;
  CheckedNode& node = job.nodes.emplace_back();
  node.ports.emplace();
  node.gpus_lost = 0;
  node.iommu_translates = false;
  const JobFacts again = job_facts_from_json(to_json(job));
  ASSERT_EQ(again.nodes.size(), 1U);
  EXPECT_TRUE(again.nodes[0].ports && again.nodes[0].ports->empty());
  EXPECT_FALSE(again.nodes[0].gpus);
  EXPECT_EQ(again.nodes[0].gpus_lost, 0);
  EXPECT_EQ(again.nodes[0].iommu_translates, false);
  EXPECT_FALSE(again.nodes[0].acs);
  EXPECT_EQ(to_json(JobFacts{}), "{}");
}

TEST(JobFactsJson, RefusesOtherTypes) {
  for (const char* const text :
       {"{", "[]", R"({"world": "4"})", R"({"world": 4.5})", R"({"world": 4294967296})",
        R"({"ranks": {}})", R"({"ranks": [4]})", R"({"ranks": [{"environment": 4}]})",
        R"({"ranks": [{"cpus": [0.5]}]})", R"({"ranks": [{"launcher": {"PMI_SIZE": 1.5}}]})",
        R"({"nodes": [{"governors": {"powersave": -4294967296}}]})", R"({"share_gpu": 1})",
        R"({"nodes": [{"memory": null}]})", R"({"ranks": [{"versions": {"mpi": 4}}]})"}) {
    EXPECT_THROW(static_cast<void>(job_facts_from_json(text)), base::Error) << text;
  }
}

}  // namespace
}  // namespace isoscale::preflight
