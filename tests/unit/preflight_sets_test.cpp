// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

/// What is said of recorded jobs, all of it that is not "ok" or "not checked".
namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

/// "warning ecc|host|device"
std::vector<std::string> wrong_in(const std::string& set) {
  std::vector<std::string> lines;
  for (const CheckResult& result : check_job(recorded_facts(set), {})) {
    if (result.verdict < Verdict::warning) continue;
    lines.push_back(
        fmt::format("{} {}|{}|{}", name(result.verdict), result.name, result.host, result.device));
  }
  return lines;
}

std::string fine_in(const std::string& set, std::string_view check) {
  const std::vector<std::string> lines = said(recorded_facts(set), check);
  return lines.size() == 1 ? lines.front() : "";
}

TEST(RecordedJob, OfTwoHgxNodesIsWell) {
  EXPECT_THAT(wrong_in("hgx-h100-8"), IsEmpty());
  EXPECT_EQ(fine_in("hgx-h100-8", "rail-map"),
            "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 GPU4-mlx5_4 GPU5-mlx5_5 "
            "GPU6-mlx5_6 GPU7-mlx5_7 on all 2 nodes");
  // The adapters of storage are slower, and their second ports are not wired.
  EXPECT_EQ(fine_in("hgx-h100-8", "port-state"),
            "ok|||ports that the job needs are ACTIVE and LinkUp; down alike on all nodes, or "
            "nearest to no GPU of the job: mlx5_11 port 1 and mlx5_9 port 1");
  EXPECT_EQ(fine_in("hgx-h100-8", "port-rate"),
            "ok|||200 Gbit/s and 400 Gbit/s; no port is slower than its like");
  EXPECT_EQ(fine_in("hgx-h100-8", "nvlinks"), "ok|||18 active NVLinks on every GPU");
  EXPECT_EQ(fine_in("hgx-h100-8", "nvlink-domain"), "ok|||no domain is wider than a node");
  EXPECT_EQ(fine_in("hgx-h100-8", "cuda-settings"), "ok|||set: CUDA_DEVICE_MAX_CONNECTIONS=1");
  EXPECT_EQ(fine_in("hgx-h100-8", "gemm-rate"), "ok|||every rank's GEMM is as fast as its like's");
  for (const CheckResult& result : check_job(recorded_facts("hgx-h100-8"), {})) {
    const bool is_of_the_host = result.name == "blas-threads" || result.name == "thread-settings";
    EXPECT_EQ(result.verdict, is_of_the_host ? Verdict::not_checked : Verdict::ok)
        << to_sentence(result);
  }
}

/// Two of the GPUs have their only adapter on the other socket; that nothing is NVLink is no fault.
TEST(RecordedJob, OfABoxWithoutNvlink) {
  EXPECT_THAT(wrong_in("pcie-box"), ElementsAre("warning gpu-nic|box|GPU 2 (0000:81:00.0)",
                                                "warning gpu-nic|box|GPU 3 (0000:c1:00.0)"));
  EXPECT_EQ(fine_in("pcie-box", "nvlink-pairs"),
            "ok|||GPUs of a node are joined by NUMA node and system");
  EXPECT_EQ(fine_in("pcie-box", "xid"),
            "not checked|||the kernel's log gives no information on it");
  EXPECT_EQ(fine_in("pcie-box", "neighbour-bandwidth"),
            "not checked|||fewer than 4 of a kind were measured");
}

TEST(RecordedJob, OfGraceHoppersIsWell) {
  EXPECT_THAT(wrong_in("grace-hopper"), IsEmpty());
  EXPECT_EQ(fine_in("grace-hopper", "peer-access"),
            "not checked|||no node has two GPUs of the job");
  EXPECT_EQ(fine_in("grace-hopper", "gpu-pcie"),
            "not checked|||no GPU has a PCIe link that counts");
  EXPECT_EQ(fine_in("grace-hopper", "xid"),
            "ok|||none in the kernels' logs but of programs' own mistakes");
}

TEST(RecordedJob, OfOneNvlinkDomainIsWell) {
  EXPECT_THAT(wrong_in("gb200-domain"), IsEmpty());
  EXPECT_EQ(fine_in("gb200-domain", "nvlink-domain"), "ok|||16 GPUs in 1 NVLink domain");
  EXPECT_EQ(fine_in("gb200-domain", "rail-map"),
            "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 on all 4 nodes");
}

TEST(RecordedJob, OfACpuClusterIsWell) {
  EXPECT_THAT(wrong_in("host-cluster"), IsEmpty());
  EXPECT_EQ(fine_in("host-cluster", "ecc"), "not checked|||the job runs on the host");
  EXPECT_EQ(fine_in("host-cluster", "port-rate"),
            "ok|||25 Gbit/s and 200 Gbit/s; no port is slower than its like");
}

TEST(RecordedJob, ThatIsBrokenHasEveryFault) {
  const std::vector<std::string> expected{
      "stop world-size|gpu-a and gpu-b|every rank",
      "stop duplicate-gpu|gpu-b|GPU-5a2e91c4-1d31-4b10-90a1-7c3f0a5e1c00",
      "warning lost-gpu|gpu-b|",
      "stop isoscale-version|gpu-b|every rank",
      "stop nccl-version|gpu-b|every rank",
      "warning mpi-version|gpu-b|every rank",
      "warning cuda-version|gpu-b|every rank",
      "warning gpu-driver|gpu-b|",
      "warning debug-build|gpu-a and gpu-b|every rank",
      "warning gpu-model|gpu-a|GPU 7 (0000:df:00.0)",
      "warning gpu-memory|gpu-a|GPU 0 (0000:1b:00.0)",
      "warning application-clock|gpu-a|GPU 3 (0000:61:00.0)",
      "warning power-limit|gpu-a|GPU 3 (0000:61:00.0)",
      "warning power-limit|gpu-a|GPU 3 (0000:61:00.0)",
      "warning vbios|gpu-a|GPU 6 (0000:d1:00.0)",
      "warning node-memory|gpu-b|",
      "warning os|gpu-b|",
      "warning ecc|gpu-a|GPU 0 (0000:1b:00.0)",
      "warning ecc-errors|gpu-a|GPU 1 (0000:43:00.0)",
      "warning row-remap|gpu-a|GPU 1 (0000:43:00.0)",
      "warning row-remap|gpu-a|GPU 2 (0000:52:00.0)",
      "warning xid|gpu-a|GPU 1 (0000:43:00.0)",
      "warning xid|gpu-a|GPU 1 (0000:43:00.0)",
      "warning xid|gpu-a|GPU 2 (0000:52:00.0)",
      "warning xid|gpu-a|GPU 2 (0000:52:00.0)",
      "warning xid|gpu-a|GPU 2 (0000:52:00.0)",
      "warning xid|gpu-a|GPU 2 (0000:52:00.0)",
      "stop compute-mode|gpu-a|GPU 6 (0000:d1:00.0)",
      "warning throttle|gpu-a|GPU 3 (0000:61:00.0)",
      "warning persistence|gpu-a|GPU 4 (0000:9d:00.0)",
      "warning other-processes|gpu-a|GPU 5 (0000:c3:00.0)",
      "warning other-processes|gpu-a|GPU 6 (0000:d1:00.0)",
      "warning peer-access|gpu-a|GPU 0 and GPU 1",
      "warning nvlinks|gpu-a|GPU 4 (0000:9d:00.0)",
      "warning nvlink-pairs|gpu-a|GPU 0 and GPU 1",
      "warning nvlink-fabric|gpu-a|GPU 7 (0000:df:00.0)",
      "warning gpu-pcie|gpu-a|GPU 5 (0000:c3:00.0)",
      "warning nic-pcie|gpu-b|mlx5_4 port 1",
      "warning iommu|gpu-b|",
      "warning acs|gpu-b|",
      "warning rail-map|gpu-b|",
      "warning gpu-cores|gpu-b|GPU 5 (0000:c3:00.0)",
      "warning port-state|gpu-b|mlx5_1 port 1",
      "warning port-rate|gpu-b|mlx5_2 port 1",
      "warning port-errors|gpu-b|mlx5_3 port 1",
      "warning port-errors|gpu-b|mlx5_5 port 1",
      "warning gpudirect-rdma|gpu-b|",
      "stop shared-cores|gpu-b|",
      "warning single-core|gpu-b|ranks 10 and 11",
      "warning numa-mask|gpu-b|rank 12",
      "warning cpu-quota|gpu-b|",
      "warning locked-memory|gpu-b|every rank",
      "warning shared-memory|gpu-b|",
      "warning cpu-governor|gpu-b|",
      "warning nccl-transports|gpu-a and gpu-b|every rank",
      "warning nccl-files|gpu-b|every rank",
      "warning nccl-debug|gpu-a|every rank",
      "warning nccl-interfaces|gpu-b|every rank",
      "warning nccl-interfaces|gpu-a and gpu-b|every rank",
      "warning nccl-plugins|gpu-b|",
      "warning nccl-plugins|gpu-b|every rank",
      "warning cuda-settings|gpu-a and gpu-b|every rank",
      "warning ucx-transports|gpu-a and gpu-b|every rank",
      "warning equal-settings|gpu-b|every rank",
      "warning equal-settings|gpu-b|every rank",
      "warning gemm-rate|gpu-a|rank 5, GPU 5 (0000:c3:00.0)",
      "warning neighbour-bandwidth|gpu-b|rank 14, GPU 6 (0000:d1:00.0) and rank 15, GPU 7 "
      "(0000:df:00.0)",
      "stop neighbour-bandwidth|gpu-a and gpu-b|rank 2, GPU 2 (0000:52:00.0) and rank 10, GPU 2 "
      "(0000:52:00.0)"};
  EXPECT_THAT(wrong_in("broken"), UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace isoscale::preflight
