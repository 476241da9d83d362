// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

/// The facts that all nodes, all GPUs and all ranks share, and how fast they are.
struct Machine {
  CheckedNode node;
  GpuFacts gpu;
  CheckedRank rank;
  int sockets = 1, threads_per_core = 1;
  double gemm_rate = 0, inside = 0, across = 0;  ///< FLOP/s, B/s on one node, B/s between nodes
};

/// A machine without faults; of the retired pages the warning begins at 60.
constexpr const char* healthy = R"({
  "sockets": 1, "threads_per_core": 1, "gemm_rate": 0, "inside": 0, "across": 0,
  "node": {"iommu_translates": false, "nvidia_peermem": true, "gdrcopy": true, "dmabuf": true,
           "nccl_plugins": ["libnccl-net.so", "libsharp.so.5"]},
  "gpu": {"driver": "580.82.07", "vbios": "96.00.A5.00.01", "compute_mode": "default",
          "memory_used": 1.2e9, "memory_clock_max": 2.6e9, "throttle_reasons": [], "ecc": true,
          "mig": false, "persistence": true, "ecc_uncorrected": 0, "remapped_rows": 0,
          "remap_pending": false, "remap_failed": false, "retired_pages": 12, "xids": [],
          "nvlinks_active": 18, "nvlinks_inactive": 0, "nvlink_peers": [],
          "fabric_state": "completed", "pcie_generation": 5, "pcie_generation_max": 5,
          "pcie_width": 16, "pcie_width_max": 16},
  "rank": {"locked_memory_unlimited": true,
           "versions": {"isoscale": "0.9.0", "git": "3f9c1d20a7b4", "build_type": "Release",
                        "mpi": "Open MPI v4.1.7", "cuda_driver": "13.0", "cuda_runtime": "13.0",
                        "cublas": "13.0.2", "nccl": "2.27.7"}}})";

/// The healthy machine with these facts changed, added or, where they are null, taken away.
Machine machine_of(const char* changes) {
  nlohmann::json facts = nlohmann::json::parse(healthy);
  facts.merge_patch(nlohmann::json::parse(changes));
  const nlohmann::json parts{{"nodes", {facts["node"], {{"gpus", {facts["gpu"]}}}}},
                             {"ranks", {facts["rank"]}}};
  JobFacts job = job_facts_from_json(parts.dump());
  return {.node = std::move(job.nodes[0]),
          .gpu = std::move(gpu_at(job, 1, 0)),
          .rank = std::move(job.ranks[0]),
          .sockets = facts["sockets"],
          .threads_per_core = facts["threads_per_core"],
          .gemm_rate = facts["gemm_rate"],
          .inside = facts["inside"],
          .across = facts["across"]};
}

std::vector<int> range(int first, int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}
/// The logical CPUs of some cores; the second threads of all cores come after the first ones.
std::vector<int> cpus_of(const Machine& machine, int first_core, int count) {
  std::vector<int> cpus;
  for (int thread = 0; thread < machine.threads_per_core; ++thread) {
    const auto more = range(thread * *machine.node.cores + first_core, count);
    cpus.insert(cpus.end(), more.begin(), more.end());
  }
  return cpus;
}

/// The PCI path of a device that has a root port to itself.
std::string own_root(int root, int function = 0) {
  return fmt::format("pci0000:{0:x}0/0000:{0:x}0:01.0/0000:{0:x}1:00.{1}", root, function);
}
/// The PCI path of a device below a switch that other devices share.
std::string under_switch(int root, int slot) {
  return fmt::format(
      "pci0000:{0:x}0/0000:{0:x}0:01.0/0000:{0:x}1:00.0/0000:{0:x}2:0{1}.0/"
      "0000:{0:x}{2}:00.0",
      root, slot, slot + 3);
}

void set_node(CheckedNode& node, const Machine& machine, int ranks) {
  CheckedNode made = machine.node;
  made.node = node.node;
  made.host = node.host;
  const int cores = *made.cores / machine.sockets;
  for (int s = 0; s < machine.sockets; ++s) {
    made.numa_cpus[fmt::format("{}", s)] = cpus_of(machine, s * cores, cores);
  }
  made.governors = {{"performance", *made.cores * machine.threads_per_core}};
  if (node.gpus) {
    made.gpus.emplace();
    made.gpus_lost = 0;
    for (const GpuFacts& known : *node.gpus) {
      const int index = static_cast<int>(made.gpus->size());
      GpuFacts& gpu = made.gpus->emplace_back(machine.gpu);
      gpu.uuid = known.uuid;
      gpu.pci_bus_id = known.pci_bus_id;
      gpu.processes = {1000 + made.node * ranks + index};
      gpu.numa_node = index * machine.sockets / ranks;
      gpu.pci_path = own_root(index + 1);
    }
  }
  node = std::move(made);
}

void set_rank(CheckedRank& rank, const Machine& machine, const JobFacts& job, int per_node) {
  CheckedRank made = machine.rank;
  made.rank = rank.rank;
  made.node = rank.node;
  made.local_rank = rank.local_rank;
  made.pid = rank.pid;
  made.gpu = rank.gpu;
  const int cores = *machine.node.cores / per_node;
  made.cores = range(rank.local_rank * cores, cores);
  made.cpus = cpus_of(machine, rank.local_rank * cores, cores);
  // Measured values scatter by 1%.
  made.gemm_rate = machine.gemm_rate * (1 + 0.001 * (7 * rank.rank % 11));
  const auto add = [&](int other, double bandwidth, int pair) {
    made.neighbours.push_back(
        {.rank = other, .bandwidth = bandwidth * (1 + 0.001 * (5 * pair % 7))});
  };
  if (per_node > 1) add(rank.rank ^ 1, machine.inside, rank.rank / 2);
  if (job.nodes.size() > 1) add(rank.rank ^ per_node, machine.across, rank.local_rank);
  rank = std::move(made);
}

/// The job on the healthy machine with these changes.
JobFacts on(JobFacts job, const char* changes) {
  const Machine machine = machine_of(changes);
  const int per_node = job.world / static_cast<int>(job.nodes.size());
  for (CheckedNode& node : job.nodes) set_node(node, machine, per_node);
  for (CheckedRank& rank : job.ranks) set_rank(rank, machine, job, per_node);
  return job;
}

void join(JobFacts& job, const std::string& link) {
  for (CheckedNode& node : job.nodes) {
    const int gpus = static_cast<int>(node.gpus->size());
    for (int i = 0; i < gpus; ++i) {
      for (int j = i + 1; j < gpus; ++j) {
        node.peers.push_back({.i = i, .j = j, .peer_access = true, .link = link});
      }
    }
  }
}

/// A port of an adapter with all 16 lanes, without errors.
CheckedPort healthy_port(int index, double rate, int generation, int numa_node, std::string path) {
  CheckedPort port = port_up(fmt::format("mlx5_{}", index));
  port.rate = rate;
  port.link_downed = port.symbol_errors = 0;
  port.pcie_generation = port.pcie_generation_max = generation;
  port.pcie_width = port.pcie_width_max = 16;
  port.numa_node = numa_node;
  port.pci_path = std::move(path);
  return port;
}
void add_port(JobFacts& job, const CheckedPort& port) {
  for (CheckedNode& node : job.nodes) {
    if (!node.ports) node.ports.emplace();
    node.ports->push_back(port);
  }
}

}  // namespace

JobFacts hgx_job() {
  JobFacts job = on(gpu_job(2, 8), R"({
    "sockets": 2, "threads_per_core": 2, "gemm_rate": 6.8e14, "inside": 3.61e11, "across": 4.82e10,
    "node": {"cpu_model": "Xeon 8480C", "os": "Linux 5.15.0-1063-nvidia", "cores": 112,
             "memory": 2e12, "shm_size": 1e12, "shm_free": 1e12, "acs": false},
    "gpu": {"name": "NVIDIA H100 80GB HBM3", "memory": 8.6e10, "sm_clock": 1.98e9,
            "sm_clock_max": 1.98e9, "sm_clock_application": 1.98e9, "power_limit": 700,
            "power_limit_default": 700, "nvlink_peers": ["0000:f7:00.0", "0000:f8:00.0"]},
    "rank": {"versions": {"device": "cuda: NVIDIA H100 80GB HBM3"},
             "environment": {"NCCL_DEBUG": "WARN", "NCCL_IB_HCA": "mlx5", "OMP_NUM_THREADS": "14",
                             "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
             "launcher": {"SLURM_JOB_NUM_NODES": 2, "SLURM_NTASKS": 16,
                          "SLURM_STEP_NUM_TASKS": 16}}})");
  join(job, "NVLink");
  for (int i = 0; i < 8; ++i) {
    add_port(job, healthy_port(i, 4e11, 5, i / 4, under_switch(i + 1, 0)));
    for (CheckedNode& node : job.nodes) {
      node.gpus->at(static_cast<std::size_t>(i)).pci_path = under_switch(i + 1, 2);
    }
  }
  for (int socket = 0; socket < 2; ++socket) {
    CheckedPort port = healthy_port(8 + 2 * socket, 2e11, 5, socket, own_root(9 + socket));
    add_port(job, port);
    port = healthy_port(9 + 2 * socket, 1e10, 5, socket, own_root(9 + socket, 1));
    port.state = "DOWN";
    port.physical_state = "Disabled";
    add_port(job, port);
  }
  for (CheckedRank& rank : job.ranks) {
    rank.visible_gpus.emplace();
    for (int g = 0; g < 8; ++g) {
      rank.visible_gpus->push_back(fmt::format("GPU-{}", 8 * rank.node + g));
    }
  }
  return job;
}

JobFacts pcie_job() {
  // An idle GPU has low clocks.
  JobFacts job = on(gpu_job(1, 4), R"({
    "sockets": 2, "threads_per_core": 2, "gemm_rate": 2.31e14, "inside": 2.2e10,
    "node": {"cpu_model": "EPYC 7543", "os": "Linux 6.8.0-51-generic", "cores": 64,
             "memory": 5.4e11, "shm_size": 2.7e11, "shm_free": 2.7e11, "nvidia_peermem": false,
             "gdrcopy": false, "nccl_plugins": []},
    "gpu": {"name": "NVIDIA L40S", "memory": 4.8e10, "sm_clock": 2.1e8, "sm_clock_max": 2.52e9,
            "sm_clock_application": 2.52e9, "power_limit": 350, "power_limit_default": 350,
            "pcie_generation": 1, "pcie_generation_max": 4, "nvlinks_active": 0,
            "fabric_state": "not supported", "mig": null, "xids": null},
    "rank": {"versions": {"device": "cuda: NVIDIA L40S"},
             "launcher": {"OMPI_COMM_WORLD_SIZE": 4}}})");
  join(job, "system");
  job.nodes[0].peers.front().link = job.nodes[0].peers.back().link = "NUMA node";
  add_port(job, healthy_port(0, 2e11, 4, 0, own_root(8)));
  return job;
}

JobFacts grace_hopper_job() {
  // NVLink-C2C, and not PCIe, joins the GPU to the CPU.
  JobFacts job = on(gpu_job(4, 1), R"({
    "gemm_rate": 7.1e14, "across": 4.7e10,
    "node": {"cpu_model": "Neoverse-V2", "os": "Linux 6.8.0-1015-nvidia-64k", "cores": 72,
             "memory": 5.13e11, "shm_size": 2.565e11, "shm_free": 2.565e11, "gdrcopy": false,
             "nccl_plugins": ["libnccl-net-ofi.so"]},
    "gpu": {"name": "NVIDIA GH200 480GB", "memory": 1.02e11, "sm_clock": 1.98e9,
            "sm_clock_max": 1.98e9, "sm_clock_application": 1.98e9, "power_limit": 900,
            "power_limit_default": 900, "nvlinks_active": 0, "nvlinks_inactive": 18,
            "fabric_state": "not supported", "pcie_width": 1},
    "rank": {"versions": {"device": "cuda: NVIDIA GH200 480GB"},
             "environment": {"NCCL_NET_PLUGIN": "ofi"},
             "launcher": {"PMI_SIZE": 4, "SLURM_NTASKS": 4}}})");
  add_port(job, healthy_port(0, 4e11, 5, 0, own_root(8)));
  gpu_at(job, 2, 0).xids = {31, 43};  // mistakes of programs
  return job;
}

JobFacts gb200_job() {
  // As in Grace Hopper, NVLink-C2C joins the GPUs to the CPUs.
  JobFacts job = on(gpu_job(4, 4), R"({
    "sockets": 2, "gemm_rate": 1.62e15, "inside": 7.1e11, "across": 7e11,
    "node": {"cpu_model": "Neoverse-V2", "os": "Linux 6.8.0-1021-nvidia-64k", "cores": 144,
             "memory": 1.02e12, "shm_size": 5.1e11, "shm_free": 5.1e11},
    "gpu": {"name": "NVIDIA GB200", "memory": 1.99e11, "sm_clock": 2.062e9,
            "sm_clock_max": 2.062e9, "power_limit": 1200, "power_limit_default": 1200,
            "xids": null, "pcie_width": 1, "fabric": "7c1f0be24d3a4a6c9e51d80f6b7712aa.32766"},
    "rank": {"versions": {"device": "cuda: NVIDIA GB200"},
             "environment": {"NCCL_MNNVL_ENABLE": "1", "NCCL_COLLNET_ENABLE": "1"},
             "launcher": {"SLURM_NTASKS": 16, "SLURM_STEP_NUM_TASKS": 16}}})");
  join(job, "NVLink");
  for (int i = 0; i < 4; ++i) add_port(job, healthy_port(i, 4e11, 5, i / 2, own_root(8 + i)));
  gpu_at(job, 3, 2).remapped_rows = 1;
  return job;
}

JobFacts cpu_job() {
  JobFacts job = on(bare_job("host", 4, 4), R"({
    "sockets": 2, "gemm_rate": 1.1e12, "inside": 1.1e10, "across": 5.9e9,
    "node": {"cpu_model": "EPYC 9654", "os": "Linux 5.14.0-427.el9.x86_64", "cores": 192,
             "memory": 8.11e11, "shm_size": 4.055e11, "shm_free": 4.055e11,
             "nvidia_peermem": false, "gdrcopy": false, "nccl_plugins": []},
    "rank": {"versions": {"cuda_driver": null, "cuda_runtime": null, "cublas": null, "nccl": null,
                          "device": "host: BLAS (OpenBLAS 0.3.21) and MPI"},
             "blas_threads": 16,
             "environment": {"OMP_NUM_THREADS": "16", "OMP_PROC_BIND": "close",
                             "UCX_TLS": "rc_x,sm,self"},
             "launcher": {"OMPI_COMM_WORLD_SIZE": 16, "SLURM_NTASKS": 16}}})");
  CheckedPort port = healthy_port(0, 2e11, 4, 0, own_root(1));
  port.pcie_generation_max = 5;
  port.link_downed = 2;
  add_port(job, port);
  port = healthy_port(1, 2.5e10, 3, 0, own_root(2));
  port.link_layer = "Ethernet";
  port.pcie_width = port.pcie_width_max = 8;
  port.symbol_errors.reset();
  add_port(job, port);
  return job;
}

namespace {

/// The change of a member of a GPU of the first node: "warning ecc|c0|GPU 0 (0000:01:00.0)|3".
template <class Member, class Value>
Fault of_gpu(int gpu, const char* check, const char* numbers, Member member, Value value) {
  return {{fmt::format("warning {}|c0|GPU {} (0000:{:02x}:00.0)|{}", check, gpu, gpu + 1, numbers)},
          [=](JobFacts& job) { gpu_at(job, 0, static_cast<std::size_t>(gpu)).*member = value; }};
}
template <class Member, class Value>
Fault of_node(const char* check, const char* numbers, Member member, Value value) {
  return {{fmt::format("warning {}|c1||{}", check, numbers)},
          [=](JobFacts& job) { job.nodes[1].*member = value; }};
}
template <class Member, class Value>
Fault of_port(std::size_t port, const char* check, const char* numbers, Member member,
              Value value) {
  return {{fmt::format("warning {}|c1|mlx5_{} port 1|{}", check, port, numbers)},
          [=](JobFacts& job) { job.nodes[1].ports->at(port).*member = value; }};
}
/// A change of each rank from this one on; the second node begins with rank 8.
template <class Change>
auto from_rank(std::size_t first, Change change) {
  return [=](JobFacts& job) {
    for (std::size_t r = first; r < job.ranks.size(); ++r) change(job.ranks[r]);
  };
}
/// Another version of something on all ranks of the second node.
Fault of_version(const char* verdict_and_check, const char* numbers, std::string key,
                 std::string version) {
  return {{fmt::format("{}|c1|every rank|{}", verdict_and_check, numbers)},
          from_rank(8, [=](CheckedRank& rank) { rank.versions[key] = version; })};
}
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
       from_rank(0, [](CheckedRank& rank) { rank.launcher["SLURM_STEP_NUM_TASKS"] = 32; })},
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
       from_rank(0, [](CheckedRank& rank) { rank.versions["build_type"] = "Debug"; })},
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
       from_rank(8,
                 [](CheckedRank& rank) {
                   rank.locked_memory_unlimited = false;
                   rank.locked_memory_limit = 65536;
                 })},
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
       from_rank(8, [](CheckedRank& rank) { rank.environment["NCCL_IB_HCA"] = "mlx5,mlx9_0"; })},
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
