// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/gpu_facts.hpp"
#include "results/records/check_result.hpp"

/// The facts about a job's nodes and ranks that preflight judges before the job measures. A fact
/// without a source is absent. Bytes, hertz, watts and bits per second are plain numbers, since the
/// facts are sent and recorded as JSON, under the names of these fields.
namespace isoscale::preflight {

using machine::GpuFacts;
using results::CheckResult;
using results::Verdict;

/// True if an NVLink joins the two GPUs, or both have links to the same switch.
[[nodiscard]] bool joined_by_nvlinks(const GpuFacts& a, const GpuFacts& b);

/// The link between two GPUs of a node; i < j are their places in CheckedNode::gpus.
struct CheckedPeers {
  int i = 0, j = 0;
  std::optional<bool> peer_access;
  /// "NVLink", or the closest element that both PCI paths share: "one board", "one switch",
  /// "several switches", "host bridge", "NUMA node", "system".
  std::optional<std::string> link;
};

/// One port of an InfiniBand or RoCE adapter.
struct CheckedPort : machine::PciFacts {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  std::optional<std::string> link_layer;                   ///< "InfiniBand", "Ethernet"
  std::optional<std::string> state, physical_state;        ///< "ACTIVE", "LinkUp"
  std::optional<double> rate;                              ///< bit/s at present
  std::optional<std::int64_t> link_downed, symbol_errors;  ///< counts since the last reset
};

struct CheckedNode {
  int node = 0;  ///< index in the job, in order of first appearance
  std::string host;
  std::optional<std::string> cpu_model, os;
  std::optional<int> cores;                           ///< number of physical cores
  std::optional<double> cpu_quota;                    ///< CPUs that a control group allows the job
  std::optional<double> memory, shm_size, shm_free;   ///< B; shm: /dev/shm
  std::map<std::string, std::vector<int>> numa_cpus;  ///< logical CPUs by NUMA node "0", "1", ...
  std::optional<std::map<std::string, int>> governors;  ///< CPUs by frequency governor
  std::optional<std::string> frequency_driver;  ///< the driver of CPU clocks: "intel_pstate"
  /// The number of CPUs by energy preference, the driver's setting that trades speed for energy:
  /// "balance_performance".
  std::optional<std::map<std::string, int>> energy_preferences;
  std::optional<bool> iommu_translates;  ///< an IOMMU is on and not in passthrough
  std::optional<bool> acs;  ///< access control redirects peer traffic on a bridge above a GPU
  std::optional<bool> nvidia_peermem, gdrcopy, dmabuf;   ///< for GPUDirect RDMA: modules are
                                                         ///< loaded, dma-buf is supported
  std::optional<std::vector<std::string>> nccl_plugins;  ///< libraries found: "libnccl-net.so"
  std::optional<std::vector<GpuFacts>> gpus;             ///< absent: no source was available
  std::optional<int> gpus_lost;  ///< permitted GPUs that NVML counts but cannot reach
  std::vector<CheckedPeers> peers;
  std::optional<std::vector<CheckedPort>> ports;  ///< empty: the node has no such adapter
};

/// The result of exchanging data with one other rank in the sniff test, a short measurement before
/// the run in which all ranks exchange data in pairs. The other rank is on the same node, or has
/// the same place on another node.
struct CheckedNeighbour {
  int rank = 0;
  std::optional<double> bandwidth;  ///< B/s in each direction at once; absent: no answer
};

struct CheckedRank {
  int rank = 0, node = 0, local_rank = 0;
  std::int64_t pid = 0;
  std::vector<int> cpus, cores;    ///< logical CPUs it may run on, their physical cores; empty =
                                   ///< unknown
  std::optional<std::string> gpu;  ///< UUID of the GPU that it takes
  /// The UUIDs of the node's GPUs that the rank may use; only for ranks that take one.
  std::optional<std::vector<std::string>> visible_gpus;
  int blas_threads = 1;
  std::optional<double> locked_memory_limit;  ///< B; absent: unknown, or no limit, see
                                              ///< locked_memory_unlimited
  bool locked_memory_unlimited = false;
  /// The versions of the job's software: "isoscale", "git", "build_type", "mpi", "cuda_driver",
  /// "cuda_runtime", "cublas", "nccl", "device".
  std::map<std::string, std::string> versions;
  /// The environment variables that affect communication and threads: NCCL_*, UCX_*, OMP_*, CUDA_*.
  /// In a run file they are empty for a rank that has the same ones as rank 0.
  std::map<std::string, std::string> environment;
  std::vector<std::string> missing_files;  ///< variables whose file is missing: "NCCL_TOPO_FILE"
  /// The numbers that the launcher sets: "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS",
  /// "SLURM_STEP_NUM_TASKS", "SLURM_JOB_NUM_NODES", ...
  std::map<std::string, std::int64_t> launcher;
  // These are the results of the sniff test; they are absent and empty if there was no test.
  std::optional<double> gemm_rate;  ///< FLOP/s
  std::vector<CheckedNeighbour> neighbours;
};

struct JobFacts {
  std::string device;                         ///< the device of the job: "host" or "cuda"
  bool share_gpu = false;                     ///< --share-gpu allows several ranks on one GPU
  int world = 1;                              ///< ranks as MPI counts them
  std::optional<std::string> device_problem;  ///< why the device cannot be used; stops the run
  std::optional<std::string> device_reason;   ///< why --device auto chose it
  std::optional<std::string> sniff_skipped;   ///< why there was no sniff test
  std::vector<CheckedNode> nodes;             ///< by index
  std::vector<CheckedRank> ranks;             ///< by rank
};

/// Writes facts as JSON: fields by name, without those that are absent or have their default.
[[nodiscard]] std::string to_json(const JobFacts& facts);
/// Reads facts from JSON, which another rank of the same program wrote. Throws base::Error if the
/// text is no JSON, or if a value has the wrong type or is out of range.
[[nodiscard]] JobFacts job_facts_from_json(std::string_view json);

/// Joins the facts that ranks collected into those of one job. Each rank and each node appears
/// once, in the order of its number; a node is taken from the first part that has it. Later parts
/// about the same node add GPUs that the first part did not see or knew only from the PCI bus, and
/// the NVLinks between them. Facts about the job itself come from the first part.
[[nodiscard]] JobFacts merge(std::vector<JobFacts> parts);

/// Runs every check of the job's setup, with pure functions of its facts. Results that differ only
/// in the host are joined into one that names all hosts. If a check named in `allowed` has the
/// verdict stop, its result is marked as allowed and does not stop the run. Throws base::UsageError
/// for a name that no check has.
[[nodiscard]] std::vector<CheckResult> check_job(const JobFacts& job,
                                                 const std::vector<std::string>& allowed);

}  // namespace isoscale::preflight
