// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight_machines.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

CheckedPort& port_at(JobFacts& job, std::size_t node, std::size_t port) {
  return job.nodes[node].ports->at(port);
}
/// Gives a version to all ranks of the second node.
void set_version(JobFacts& job, const std::string& key, const std::string& version) {
  for (CheckedRank& rank : job.ranks) {
    if (rank.node == 1) rank.versions[key] = version;
  }
}
/// Gives a variable to all ranks.
void set_variable(JobFacts& job, const std::string& variable, const std::string& value) {
  for (CheckedRank& rank : job.ranks) rank.environment[variable] = value;
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
      {{"warning lost-gpu|c1||1 GPU"}, [](JobFacts& job) { job.nodes[1].gpus_lost = 1; }},
      {{"stop isoscale-version|c1|every rank|3f9c1d20a7b4-dirty 3f9c1d20a7b4"},
       [](JobFacts& job) { set_version(job, "git", "3f9c1d20a7b4-dirty"); }},
      {{"stop nccl-version|c1|every rank|2.21.5 2.27.7"},
       [](JobFacts& job) { set_version(job, "nccl", "2.21.5"); }},
      {{"warning mpi-version|c1|every rank|v4.1.4 v4.1.7"},
       [](JobFacts& job) { set_version(job, "mpi", "Open MPI v4.1.4"); }},
      {{"warning cuda-version|c1|every rank|12.8 13.0"},
       [](JobFacts& job) { set_version(job, "cuda_driver", "12.8"); }},
      {{"warning gpu-driver|c1||570.124.06 580.82.07"},
       [](JobFacts& job) {
         for (GpuFacts& gpu : *job.nodes[1].gpus) gpu.driver = "570.124.06";
       }},
      {{"warning debug-build|c0 and c1|every rank|"},
       [](JobFacts& job) {
         for (CheckedRank& rank : job.ranks) rank.versions["build_type"] = "Debug";
       }},
      {{"warning node-memory|c1||1.70 TiB 1.82 TiB"},
       [](JobFacts& job) { job.nodes[1].memory = 1.87e12; }},
      {{"warning cpu-model|c1||8480C 96 8480C 112"},
       [](JobFacts& job) { job.nodes[1].cores = 96; }},
      {{"warning os|c1||5.15.0-1042-nvidia 5.15.0-1063-nvidia"},
       [](JobFacts& job) { job.nodes[1].os = "Linux 5.15.0-1042-nvidia"; }},

      // GPUs.
      {{"warning gpu-model|c0|GPU 7 (0000:08:00.0)|H100 80GB HBM2e H100 80GB HBM3"},
       [](JobFacts& job) { gpu_at(job, 0, 7).name = "NVIDIA H100 80GB HBM2e"; }},
      {{"warning gpu-memory|c0|GPU 0 (0000:01:00.0)|81.0 GiB 80.1 GiB"},
       [](JobFacts& job) { gpu_at(job, 0, 0).memory = 8.7e10; }},
      {{"warning gpu-clocks|c0|GPU 2 (0000:03:00.0)|1.7 GHz 1.98 GHz",
        "warning gpu-clocks|c0|GPU 2 (0000:03:00.0)|1.5 GHz 2.6 GHz"},
       [](JobFacts& job) {
         gpu_at(job, 0, 2).sm_clock_max = 1.7e9;
         gpu_at(job, 0, 2).memory_clock_max = 1.5e9;
       }},
      {{"warning application-clock|c0|GPU 3 (0000:04:00.0)|1.41 GHz 1.98 GHz"},
       [](JobFacts& job) { gpu_at(job, 0, 3).sm_clock_application = 1.41e9; }},
      {{"warning power-limit|c0|GPU 3 (0000:04:00.0)|500 W 700 W",
        "warning power-limit|c0|GPU 3 (0000:04:00.0)|500 W 700 W"},
       [](JobFacts& job) { gpu_at(job, 0, 3).power_limit = 500; }},
      {{"warning throttle|c0|GPU 3 (0000:04:00.0)|"},
       [](JobFacts& job) {
         gpu_at(job, 0, 3).throttle_reasons = {"hardware thermal slowdown",
                                               "application clock settings"};
       }},
      {{"warning vbios|c0|GPU 6 (0000:07:00.0)|96.00.68.00.01 96.00.A5.00.01"},
       [](JobFacts& job) { gpu_at(job, 0, 6).vbios = "96.00.68.00.01"; }},
      {{"stop compute-mode|c0|GPU 6 (0000:07:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 6).compute_mode = "prohibited"; }},
      {{"warning mig|c0|GPU 4 (0000:05:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 4).mig = true; }},
      {{"warning ecc|c0|GPU 0 (0000:01:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 0).ecc = false; }},
      {{"warning ecc-errors|c0|GPU 1 (0000:02:00.0)|3"},
       [](JobFacts& job) { gpu_at(job, 0, 1).ecc_uncorrected = 3; }},
      {{"warning row-remap|c0|GPU 1 (0000:02:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 1).remap_pending = true; }},
      {{"warning row-remap|c0|GPU 2 (0000:03:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 2).remap_failed = true; }},
      {{"warning row-remap|c0|GPU 3 (0000:04:00.0)|60"},
       [](JobFacts& job) { gpu_at(job, 0, 3).retired_pages = 60; }},
      {{"warning xid|c0|GPU 1 (0000:02:00.0)|94", "warning xid|c0|GPU 1 (0000:02:00.0)|63"},
       [](JobFacts& job) {
         gpu_at(job, 0, 1).xids = {31, 94, 63};
       }},
      {{"warning xid|c0|GPU 2 (0000:03:00.0)|79", "warning xid|c0|GPU 2 (0000:03:00.0)|74",
        "warning xid|c0|GPU 2 (0000:03:00.0)|119", "warning xid|c0|GPU 2 (0000:03:00.0)|109"},
       [](JobFacts& job) {
         gpu_at(job, 0, 2).xids = {79, 74, 119, 109};
       }},
      {{"warning persistence|c0|GPU 4 (0000:05:00.0)|"},
       [](JobFacts& job) { gpu_at(job, 0, 4).persistence = false; }},
      {{"warning other-processes|c0|GPU 5 (0000:06:00.0)|990"},
       [](JobFacts& job) {
         gpu_at(job, 0, 5).processes = {1005, 990};
       }},
      {{"warning other-processes|c0|GPU 6 (0000:07:00.0)|28.9 GiB 1.12 GiB"},
       [](JobFacts& job) { gpu_at(job, 0, 6).memory_used = 3.1e10; }},

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
      {{"warning nvlinks|c0|GPU 6 (0000:07:00.0)|8 18"},
       [](JobFacts& job) { gpu_at(job, 0, 6).nvlinks_active = 8; }},
      {{"warning nvlink-fabric|c0|GPU 7 (0000:08:00.0)|3"},
       [](JobFacts& job) { gpu_at(job, 0, 7).fabric_state = "failed: 3"; }},
      {{"warning gpu-pcie|c0|GPU 5 (0000:06:00.0)|8 16"},
       [](JobFacts& job) { gpu_at(job, 0, 5).pcie_width = 8; }},
      {{"warning gpu-pcie|c0|GPU 6 (0000:07:00.0)|3 5"},
       [](JobFacts& job) { gpu_at(job, 0, 6).pcie_generation_max = 3; }},
      {{"warning nic-pcie|c1|mlx5_4 port 1|4 x8 5 x16"},
       [](JobFacts& job) {
         port_at(job, 1, 4).pcie_generation = 4;
         port_at(job, 1, 4).pcie_width = 8;
       }},
      {{"warning iommu|c1||"}, [](JobFacts& job) { job.nodes[1].iommu_translates = true; }},
      {{"warning acs|c1||"}, [](JobFacts& job) { job.nodes[1].acs = true; }},
      {{"warning port-state|c1|mlx5_1 port 1|",
        "warning rail-map|c1||" + rail_maps("GPU1-mlx5_2 ")},
       [](JobFacts& job) {
         port_at(job, 1, 1).state = "DOWN";
         port_at(job, 1, 1).physical_state = "Polling";
       }},
      {{"warning port-rate|c1|mlx5_2 port 1|200 Gbit/s 400 Gbit/s"},
       [](JobFacts& job) { port_at(job, 1, 2).rate = 2e11; }},
      {{"warning port-errors|c1|mlx5_3 port 1|57"},
       [](JobFacts& job) { port_at(job, 1, 3).link_downed = 57; }},
      {{"warning port-errors|c1|mlx5_5 port 1|90211"},
       [](JobFacts& job) { port_at(job, 1, 5).symbol_errors = 90211; }},
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
      {{"warning cpu-quota|c1||4 CPUs 8"}, [](JobFacts& job) { job.nodes[1].cpu_quota = 4; }},
      {{"warning locked-memory|c1|every rank|64.0 KiB"},
       [](JobFacts& job) {
         for (std::size_t r = 8; r < 16; ++r) {
           job.ranks[r].locked_memory_unlimited = false;
           job.ranks[r].locked_memory_limit = 65536;
         }
       }},
      {{"warning shared-memory|c1||64.0 MiB 8 512 MiB"},
       [](JobFacts& job) { job.nodes[1].shm_free = 67108864; }},
      {{"warning cpu-governor|c1||4 224 CPUs"},
       [](JobFacts& job) {
         job.nodes[1].governors = {{"performance", 220}, {"powersave", 4}};
       }},

      // Variables.
      {{"warning nccl-transports|c0 and c1|every rank|NCCL_P2P_DISABLE=1"},
       [](JobFacts& job) { set_variable(job, "NCCL_P2P_DISABLE", "1"); }},
      {{"warning nccl-files|c1|every rank|NCCL_TOPO_FILE"},
       [](JobFacts& job) {
         set_variable(job, "NCCL_TOPO_FILE", "/etc/nccl/topo.xml");
         for (std::size_t r = 8; r < 16; ++r) job.ranks[r].missing_files = {"NCCL_TOPO_FILE"};
       }},
      {{"warning nccl-debug|c0|every rank|NCCL_DEBUG=INFO",
        "warning equal-settings|c1|every rank|NCCL_DEBUG NCCL_DEBUG=INFO"},
       [](JobFacts& job) {
         set_variable(job, "NCCL_DEBUG", "INFO");
         for (std::size_t r = 8; r < 16; ++r) job.ranks[r].environment.erase("NCCL_DEBUG");
       }},
      {{"warning nccl-interfaces|c1|every rank|NCCL_IB_HCA mlx9_0",
        "warning equal-settings|c1|every rank|NCCL_IB_HCA 2 NCCL_IB_HCA 1"},
       [](JobFacts& job) {
         for (std::size_t r = 8; r < 16; ++r) {
           job.ranks[r].environment["NCCL_IB_HCA"] = "mlx5,mlx9_0";
         }
       }},
      {{"warning nccl-interfaces|c0 and c1|every rank|NCCL_SOCKET_IFNAME=lo"},
       [](JobFacts& job) { set_variable(job, "NCCL_SOCKET_IFNAME", "lo"); }},
      {{"warning nccl-plugins|c1||libnccl-net.so libsharp.so.5",
        "warning nccl-plugins|c1|every rank|NCCL_COLLNET_ENABLE"},
       [](JobFacts& job) {
         set_variable(job, "NCCL_COLLNET_ENABLE", "1");
         job.nodes[1].nccl_plugins->clear();
       }},
      {{"warning cuda-settings|c0 and c1|every rank|CUDA_LAUNCH_BLOCKING=1"},
       [](JobFacts& job) { set_variable(job, "CUDA_LAUNCH_BLOCKING", "1"); }},
      {{"warning ucx-transports|c0 and c1|every rank|UCX_TLS=tcp,sm,self"},
       [](JobFacts& job) { set_variable(job, "UCX_TLS", "tcp,sm,self"); }},

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
       [](JobFacts& job) {
         for (const std::size_t r : {2U, 10U}) job.ranks[r].neighbours[1].bandwidth.reset();
       }},
  };
  return all;
}

JobFacts broken_job() {
  JobFacts job = hgx_job();
  for (const Fault& fault : faults()) fault.plant(job);
  return job;
}

}  // namespace isoscale::preflight
