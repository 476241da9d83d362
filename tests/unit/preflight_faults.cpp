// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

/// The change of a member of a GPU of the first node: "warning ecc|c0|GPU 0 (0000:01:00.0)|3".
template <class Member, class Value>
Fault of_gpu(int gpu, const char* check, const char* numbers, Member member, Value value) {
  return {{fmt::format("warning {}|c0|GPU {} (0000:{:02x}:00.0)|{}", check, gpu, gpu + 1, numbers)},
          [=](JobFacts& job) { gpu_at(job, 0, static_cast<std::size_t>(gpu)).*member = value; }};
}
/// The change of a member of the second node.
template <class Member, class Value>
Fault of_node(const char* check, const char* numbers, Member member, Value value) {
  return {{fmt::format("warning {}|c1||{}", check, numbers)},
          [=](JobFacts& job) { job.nodes[1].*member = value; }};
}
/// The change of a member of a port of the second node.
template <class Member, class Value>
Fault of_port(std::size_t port, const char* check, const char* numbers, Member member,
              Value value) {
  return {{fmt::format("warning {}|c1|mlx5_{} port 1|{}", check, port, numbers)},
          [=](JobFacts& job) { job.nodes[1].ports->at(port).*member = value; }};
}
/// Another version of something on all ranks of the second node.
Fault of_version(const char* verdict_and_check, const char* numbers, std::string key,
                 std::string version) {
  return {{fmt::format("{}|c1|every rank|{}", verdict_and_check, numbers)}, [=](JobFacts& job) {
            for (std::size_t r = 8; r < 16; ++r) job.ranks[r].versions[key] = version;
          }};
}
/// A variable of all ranks.
Fault of_variable(const char* check, const char* numbers, const char* name, const char* value) {
  return {{fmt::format("warning {}|c0 and c1|every rank|{}", check, numbers)},
          on_environment(name, value)};
}

/// The nearest adapters of a node's GPUs, with those of the second one as given, and of its like.
std::string rail_maps(const std::string& second) {
  constexpr const char* others =
      "GPU2-mlx5_2 GPU3-mlx5_3 GPU4-mlx5_4 GPU5-mlx5_5 GPU6-mlx5_6 GPU7-mlx5_7";
  return fmt::format("GPU0-mlx5_0 {0}{1} GPU0-mlx5_0 GPU1-mlx5_1 {1}", second, others);
}

}  // namespace

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      // The launch and what ranks are made of.
      {{"stop world-size|c0 and c1|every rank|SLURM_STEP_NUM_TASKS 32 16"},
       [](JobFacts& job) {
         for (CheckedRank& rank : job.ranks) rank.launcher["SLURM_STEP_NUM_TASKS"] = 32;
       }},
      {{"stop duplicate-gpu|c1|GPU-8|8 9", "warning rail-map|c1||" + rail_maps("")},
       [](JobFacts& job) { job.ranks[9].gpu = job.ranks[8].gpu; }},
      of_node("lost-gpu", "1 GPU", &CheckedNode::gpus_lost, 1),
      of_version("stop isoscale-version", "0.8.0 0.9.0", "isoscale", "0.8.0"),
      of_version("stop isoscale-version", "3f9c1d20a7b4-dirty 3f9c1d20a7b4", "git",
                 "3f9c1d20a7b4-dirty"),
      of_version("stop nccl-version", "2.21.5 2.27.7", "nccl", "2.21.5"),
      of_version("warning mpi-version", "v4.1.4 v4.1.7", "mpi", "Open MPI v4.1.4"),
      of_version("warning cuda-version", "12.8 13.0", "cuda_driver", "12.8"),
      of_version("warning cuda-version", "12.6 13.0", "cuda_runtime", "12.6"),
      of_version("warning cuda-version", "12.9.1 13.0.2", "cublas", "12.9.1"),
      {{"warning gpu-driver|c1||570.124.06 580.82.07"},
       [](JobFacts& job) {
         for (GpuFacts& gpu : *job.nodes[1].gpus) gpu.driver = "570.124.06";
       }},
      {{"warning debug-build|c0 and c1|every rank|"},
       [](JobFacts& job) {
         for (CheckedRank& rank : job.ranks) rank.versions["build_type"] = "Debug";
       }},
      of_node("node-memory", "1.70 TiB 1.82 TiB", &CheckedNode::memory, 1.87e12),
      of_node("cpu-model", "8480C 96 8480C 112", &CheckedNode::cores, 96),
      of_node("os", "5.15.0-1042-nvidia 5.15.0-1063-nvidia", &CheckedNode::os,
              "Linux 5.15.0-1042-nvidia"),

      // GPUs.
      of_gpu(7, "gpu-model", "H100 80GB HBM2e H100 80GB HBM3", &GpuFacts::name,
             "NVIDIA H100 80GB HBM2e"),
      of_gpu(0, "gpu-memory", "81.0 GiB 80.1 GiB", &GpuFacts::memory, 8.7e10),
      of_gpu(2, "gpu-clocks", "1.7 GHz 1.98 GHz", &GpuFacts::sm_clock_max, 1.7e9),
      of_gpu(2, "gpu-clocks", "1.5 GHz 2.6 GHz", &GpuFacts::memory_clock_max, 1.5e9),
      of_gpu(3, "application-clock", "1.41 GHz 1.98 GHz", &GpuFacts::sm_clock_application, 1.41e9),
      {{"warning power-limit|c0|GPU 3 (0000:04:00.0)|500 W 700 W",
        "warning power-limit|c0|GPU 3 (0000:04:00.0)|500 W 700 W"},
       [](JobFacts& job) { gpu_at(job, 0, 3).power_limit = 500; }},
      of_gpu(3, "throttle", "", &GpuFacts::throttle_reasons,
             std::vector<std::string>{"hardware thermal slowdown", "application clock settings"}),
      of_gpu(6, "vbios", "96.00.68.00.01 96.00.A5.00.01", &GpuFacts::vbios, "96.00.68.00.01"),
      {{"stop compute-mode|c0|GPU 6 (0000:07:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 6).compute_mode = "prohibited"; }},
      of_gpu(4, "mig", "", &GpuFacts::mig, true),
      of_gpu(0, "ecc", "", &GpuFacts::ecc, false),
      of_gpu(1, "ecc-errors", "3", &GpuFacts::ecc_uncorrected, 3),
      of_gpu(1, "row-remap", "", &GpuFacts::remap_pending, true),
      of_gpu(2, "row-remap", "", &GpuFacts::remap_failed, true),
      of_gpu(3, "row-remap", "60", &GpuFacts::retired_pages, 60),
      {{"warning xid|c0|GPU 1 (0000:02:00.0)|94", "warning xid|c0|GPU 1 (0000:02:00.0)|63"},
       [](JobFacts& job) {
         gpu_at(job, 0, 1).xids = {31, 94, 63};
       }},
      {{"warning xid|c0|GPU 2 (0000:03:00.0)|79", "warning xid|c0|GPU 2 (0000:03:00.0)|74",
        "warning xid|c0|GPU 2 (0000:03:00.0)|119", "warning xid|c0|GPU 2 (0000:03:00.0)|109"},
       [](JobFacts& job) {
         gpu_at(job, 0, 2).xids = {79, 74, 119, 109};
       }},
      of_gpu(4, "persistence", "", &GpuFacts::persistence, false),
      of_gpu(5, "other-processes", "990", &GpuFacts::processes,
             std::vector<std::int64_t>{1005, 990}),
      of_gpu(6, "other-processes", "28.9 GiB 1.12 GiB", &GpuFacts::memory_used, 3.1e10),

      // Links.
      {{"warning peer-access|c0|GPU 0 and GPU 1|", "warning nvlink-pairs|c0|GPU 0 and GPU 1|"},
       [](JobFacts& job) {
         job.nodes[0].peers[0].peer_access = false;
         job.nodes[0].peers[0].link = "system";
       }},
      {{"warning nvlinks|c0|GPU 4 (0000:05:00.0)|2 18 NVLinks"},
       [](JobFacts& job) {
         gpu_at(job, 0, 4).nvlinks_active = 16;
         gpu_at(job, 0, 4).nvlinks_inactive = 2;
       }},
      of_gpu(6, "nvlinks", "8 18", &GpuFacts::nvlinks_active, 8),
      of_gpu(7, "nvlink-fabric", "3", &GpuFacts::fabric_state, "failed: 3"),
      of_gpu(5, "gpu-pcie", "8 16", &GpuFacts::pcie_width, 8),
      of_gpu(6, "gpu-pcie", "3 5", &GpuFacts::pcie_generation_max, 3),
      {{"warning nic-pcie|c1|mlx5_4 port 1|4 x8 5 x16"},
       [](JobFacts& job) {
         job.nodes[1].ports->at(4).pcie_generation = 4;
         job.nodes[1].ports->at(4).pcie_width = 8;
       }},
      of_node("iommu", "", &CheckedNode::iommu_translates, true),
      of_node("acs", "", &CheckedNode::acs, true),
      {{"warning port-state|c1|mlx5_1 port 1|",
        "warning rail-map|c1||" + rail_maps("GPU1-mlx5_2 ")},
       [](JobFacts& job) {
         job.nodes[1].ports->at(1).state = "DOWN";
         job.nodes[1].ports->at(1).physical_state = "Polling";
       }},
      of_port(2, "port-rate", "200 Gbit/s 400 Gbit/s", &CheckedPort::rate, 2e11),
      of_port(3, "port-errors", "57", &CheckedPort::link_downed, 57),
      of_port(5, "port-errors", "90211", &CheckedPort::symbol_errors, 90211),
      {{"warning gpudirect-rdma|c1||nvidia_peermem"},
       [](JobFacts& job) { job.nodes[1].nvidia_peermem = job.nodes[1].dmabuf = false; }},

      // CPUs and memory of the node.
      {{"stop shared-cores|c1||7 8", "warning single-core|c1|ranks 10 and 11|"},
       [](JobFacts& job) {
         for (const std::size_t r : {10U, 11U}) job.ranks[r].cpus = job.ranks[r].cores = {28};
       }},
      {{"warning numa-mask|c1|rank 12|2 NUMA"},
       [](JobFacts& job) {
         for (int cpu = 50; cpu < 56; ++cpu) job.ranks[12].cpus.push_back(cpu);
       }},
      {{"warning gpu-cores|c1|GPU 5 (0000:06:00.0)|1"},
       [](JobFacts& job) {
         job.ranks[13].cpus = job.ranks[8].cpus;
         job.ranks[13].cores = job.ranks[8].cores;
       }},
      of_node("cpu-quota", "4 CPUs 8", &CheckedNode::cpu_quota, 4),
      {{"warning locked-memory|c1|every rank|64.0 KiB"},
       [](JobFacts& job) {
         for (std::size_t r = 8; r < 16; ++r) {
           job.ranks[r].locked_memory_unlimited = false;
           job.ranks[r].locked_memory_limit = 65536;
         }
       }},
      of_node("shared-memory", "64.0 MiB 8 512 MiB", &CheckedNode::shm_free, 67108864),
      of_node("cpu-governor", "4 224 CPUs", &CheckedNode::governors,
              std::map<std::string, int>{{"performance", 220}, {"powersave", 4}}),

      // Variables.
      of_variable("nccl-transports", "NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE", "1"),
      {{"warning nccl-files|c1|every rank|NCCL_TOPO_FILE"},
       [](JobFacts& job) {
         on_environment("NCCL_TOPO_FILE", "/etc/nccl/topo.xml")(job);
         for (std::size_t r = 8; r < 16; ++r) job.ranks[r].missing_files = {"NCCL_TOPO_FILE"};
       }},
      {{"warning nccl-debug|c0|every rank|NCCL_DEBUG=INFO",
        "warning equal-settings|c1|every rank|NCCL_DEBUG NCCL_DEBUG=INFO"},
       [](JobFacts& job) {
         on_environment("NCCL_DEBUG", "INFO")(job);
         for (std::size_t r = 8; r < 16; ++r) job.ranks[r].environment.erase("NCCL_DEBUG");
       }},
      {{"warning nccl-interfaces|c1|every rank|NCCL_IB_HCA mlx9_0",
        "warning equal-settings|c1|every rank|NCCL_IB_HCA 2 NCCL_IB_HCA 1"},
       [](JobFacts& job) {
         for (std::size_t r = 8; r < 16; ++r) {
           job.ranks[r].environment["NCCL_IB_HCA"] = "mlx5,mlx9_0";
         }
       }},
      of_variable("nccl-interfaces", "NCCL_SOCKET_IFNAME=lo", "NCCL_SOCKET_IFNAME", "lo"),
      {{"warning nccl-plugins|c1||libnccl-net.so libsharp.so.5",
        "warning nccl-plugins|c1|every rank|NCCL_COLLNET_ENABLE"},
       [](JobFacts& job) {
         on_environment("NCCL_COLLNET_ENABLE", "1")(job);
         job.nodes[1].nccl_plugins->clear();
       }},
      of_variable("cuda-settings", "CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING", "1"),
      of_variable("ucx-transports", "UCX_TLS=tcp,sm,self", "UCX_TLS", "tcp,sm,self"),

      // The sniff test.
      {{"warning gemm-rate|c0|rank 5, GPU 5 (0000:06:00.0)|550 TFLOP/s 19.6% 684 TFLOP/s 16 H100 "
        "80GB HBM3"},
       [](JobFacts& job) { job.ranks[5].gemm_rate = 5.5e14; }},
      {{"warning neighbour-bandwidth|c1|rank 14, GPU 6 (0000:07:00.0) and rank 15, GPU 7 "
        "(0000:08:00.0)|120 GB/s 66.8% 362 GB/s 8"},
       [](JobFacts& job) {
         for (const std::size_t r : {14U, 15U}) job.ranks[r].neighbours[0].bandwidth = 1.2e11;
       }},
      {{"stop neighbour-bandwidth|c0 and c1|rank 2, GPU 2 (0000:03:00.0) and rank 10, GPU 2 "
        "(0000:03:00.0)|"},
       [](JobFacts& job) { job.ranks[10].neighbours[1].bandwidth.reset(); }},
  };
  return all;
}

JobFacts broken_job() {
  JobFacts job = hgx_job();
  for (const Fault& fault : faults()) fault.plant(job);
  return job;
}

}  // namespace isoscale::preflight
