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
#include "results/records/preflight_result.hpp"

/// The facts about a job's nodes and ranks that preflight judges before the job measures. A fact
/// that could not be found out is absent. Bytes, hertz, watts and bits per second are plain
/// numbers, since facts are sent and recorded as JSON under the names of these fields.
namespace isoscale::preflight {

using machine::GpuFacts;
using results::CheckResult;
using results::Verdict;

/// True if NVLinks lead from one of the two GPUs to the other, or from both to the same switch.
[[nodiscard]] bool joined_by_nvlinks(const GpuFacts& a, const GpuFacts& b);

/// The closest element of the machine that two PCI functions share, from near to far. A host bridge
/// is the root of one tree of PCI buses.
enum class PciDistance : std::uint8_t {
  one_switch,
  several_switches,
  host_bridge,
  numa_node,
  system
};
/// Returns "one switch", "several switches", "host bridge", "NUMA node" or "system".
[[nodiscard]] std::string_view name(PciDistance distance);
/// Returns the distance between two PCI functions. Returns nullopt if a path is unknown, or if the
/// paths share nothing and a NUMA node is unknown.
[[nodiscard]] std::optional<PciDistance> distance_between(const machine::PciFacts& a,
                                                          const machine::PciFacts& b);

/// The link between two GPUs of a node; i < j are their indices in CheckedNode::gpus.
struct CheckedPeers {
  int i = 0, j = 0;
  std::optional<bool> peer_access;
  /// "NVLink", "one board", or the name of the distance between the GPUs on the PCI bus.
  std::optional<std::string> link;
};

/// One port of an InfiniBand or RoCE adapter.
struct CheckedPort : machine::PciFacts {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  std::optional<std::string> link_layer;             ///< "InfiniBand", "Ethernet"
  std::optional<std::string> state, physical_state;  ///< "ACTIVE", "LinkUp"
  std::optional<double> rate;                        ///< bit/s at present
  /// Error counts of the port since its counters were last reset.
  std::optional<std::int64_t> link_downed, symbol_errors;
};

struct CheckedNode {
  /// The index of the node. Nodes are numbered in the order of their lowest ranks.
  int node = 0;
  std::string host;
  std::optional<std::string> cpu_model, os;
  std::optional<int> cores;         ///< number of physical cores
  std::optional<double> cpu_quota;  ///< number of CPUs whose time a control group allows the job
  std::optional<double> memory, shm_size, shm_free;     ///< bytes; shm is the file system /dev/shm
  std::map<std::string, std::vector<int>> numa_cpus;    ///< logical CPUs by NUMA node "0", "1", ...
  std::optional<std::map<std::string, int>> governors;  ///< number of CPUs by frequency governor
  std::optional<std::string> frequency_driver;  ///< the driver that sets CPU clocks: "intel_pstate"
  /// The number of CPUs by energy preference, a setting of the frequency driver that trades speed
  /// for energy: "balance_performance".
  std::optional<std::map<std::string, int>> energy_preferences;
  std::optional<bool> iommu_translates;  ///< true if an IOMMU is on and not in passthrough mode
  /// True if access control services (ACS) on a bridge above a GPU redirect traffic between
  /// devices.
  std::optional<bool> acs;
  /// GPUDirect RDMA and GDRCopy need these: the kernel modules nvidia_peermem and gdrdrv (true if
  /// loaded), and dma-buf (true if supported).
  std::optional<bool> nvidia_peermem, gdrcopy, dmabuf;
  /// NCCL plugins that are installed: "libnccl-net.so".
  std::optional<std::vector<std::string>> nccl_plugins;
  /// The GPUs of the node; absent: neither NVML nor the PCI bus could be asked.
  std::optional<std::vector<GpuFacts>> gpus;
  /// The number of GPUs that the job may use and that NVML counts, but cannot reach; absent: NVML
  /// could not be asked.
  std::optional<int> gpus_lost;
  std::vector<CheckedPeers> peers;
  /// The ports of InfiniBand and RoCE adapters. Empty: the node has no such adapter; absent: the
  /// kernel does not show them.
  std::optional<std::vector<CheckedPort>> ports;
};

/// The result of one exchange in the sniff test, a short measurement before the run in which all
/// ranks exchange data in pairs. The partner is either a rank on the same node, or the rank with
/// the same local number on another node.
struct CheckedNeighbour {
  int rank = 0;
  /// B/s in each direction, with both directions busy; absent: the partner did not answer.
  std::optional<double> bandwidth;
};

struct CheckedRank {
  int rank = 0, node = 0, local_rank = 0;
  std::int64_t pid = 0;
  /// Logical CPUs that the rank may run on, and their physical cores; empty = unknown.
  std::vector<int> cpus, cores;
  std::optional<std::string> gpu;  ///< UUID of the GPU that the rank uses
  /// The UUIDs of the node's GPUs that the rank may use; absent for a rank that uses no GPU, or if
  /// NVML could not be asked.
  std::optional<std::vector<std::string>> visible_gpus;
  int blas_threads = 1;
  /// The limit of the memory that the rank may lock, in bytes; absent: unknown, or there is none
  /// (then locked_memory_unlimited is true).
  std::optional<double> locked_memory_limit;
  bool locked_memory_unlimited = false;
  /// The versions of this rank's software by key: "isoscale", "git", "build_type", "mpi", "device"
  /// (a text about the device and its libraries), and for a rank on a GPU the software versions
  /// that a run file stores for each rank, such as "nccl" and "cublas".
  std::map<std::string, std::string> versions;
  /// The environment variables that set how threads, MPI, networks and devices work
  /// (machine::recorded_settings). A run file stores them only for rank 0 and for ranks whose
  /// variables differ from those of rank 0.
  std::map<std::string, std::string> environment;
  /// Names of variables whose value is the path of a missing file: "NCCL_TOPO_FILE".
  std::vector<std::string> missing_files;
  /// Numbers of processes, nodes, CPUs and GPUs that the launcher gives in variables:
  /// "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS",
  /// "SLURM_JOB_NUM_NODES", ...
  std::map<std::string, std::int64_t> launcher;
  // The results of the sniff test; absent and empty if there was no test.
  std::optional<double> gemm_rate;  ///< FLOP/s of a GEMM
  std::vector<CheckedNeighbour> neighbours;
};

struct JobFacts {
  std::string device;      ///< the device of the job: "host" or "cuda"
  bool share_gpu = false;  ///< --share-gpu allows several ranks on one GPU
  int world = 1;           ///< number of ranks of MPI_COMM_WORLD
  /// The reason why the device cannot be used, which stops the run; absent: it can be used.
  std::optional<std::string> device_problem;
  /// The reason why --device auto chose the device; absent if the user named it.
  std::optional<std::string> device_reason;
  /// The reason why there was no sniff test; absent if there was one.
  std::optional<std::string> sniff_skipped;
  std::vector<CheckedNode> nodes;  ///< in the order of node indices
  std::vector<CheckedRank> ranks;  ///< in the order of ranks
};

/// Returns the facts as JSON. Fields that are absent or have their default value are left out.
[[nodiscard]] std::string to_json(const JobFacts& facts);
/// Reads facts from JSON, which another rank of the same program wrote. Throws base::Error if the
/// text is no JSON, or if a value has the wrong type or is out of range.
[[nodiscard]] JobFacts job_facts_from_json(std::string_view text);

/// Joins the facts that several ranks collected into the facts of one job. Each rank and each node
/// appears once in the result, in ascending order. If several parts describe the same node, the
/// first of them is used. From the others, only facts of GPUs are added that the first part did not
/// have, or had only from the PCI bus. Pairs of GPUs whose facts then show a common NVLink get the
/// link "NVLink". Facts about the job itself come from the first part.
[[nodiscard]] JobFacts merge(std::vector<JobFacts> parts);

/// Runs every check on the facts of a job. Results that differ only in the host are joined into one
/// result that names all hosts. If `allowed` names a check whose verdict is stop, its result is
/// marked as allowed and does not stop the run. Throws base::UsageError if `allowed` has a name
/// that is not the name of a check.
[[nodiscard]] std::vector<CheckResult> check_job(const JobFacts& job,
                                                 const std::vector<std::string>& allowed);

}  // namespace isoscale::preflight
