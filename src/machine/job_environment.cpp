// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/job_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "base/text.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::machine {
namespace {

// Only variables with names in the following lists are recorded. None of them holds a token, key or
// password.

/// Variables that set the number of threads and their binding.
constexpr std::array thread_names = std::to_array<std::string_view>(
    {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE",
     "GOTO_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "GOMP_CPU_AFFINITY",
     "KMP_AFFINITY"});
/// Variables that describe the job and its ranks.
constexpr std::array job_names = std::to_array<std::string_view>(
    {// Slurm
     "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE",
     "SLURM_STEP_NUM_TASKS", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_ON_NODE",
     "SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS",
     "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_GPU", "SLURM_GPU_BIND", "SLURM_GPU_FREQ",
     "SLURM_JOB_PARTITION", "SLURM_JOB_END_TIME", "SLURM_CPU_BIND", "SLURM_MPI_TYPE",
     // PBS, LSF and Flux
     "PBS_JOBID", "PBS_QUEUE", "PBS_WALLTIME", "PBS_NP", "LSB_JOBID", "LSB_QUEUE",
     "LSB_DJOB_NUMPROC", "FLUX_JOB_ID", "FLUX_JOB_SIZE",
     // MPI libraries
     "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_RANK", "PMI_SIZE", "PMI_RANK",
     "MPI_LOCALNRANKS"});
/// Variables that set how libraries and devices work.
constexpr std::array library_names = std::to_array<std::string_view>(
    {// MPI: Open MPI, MPICH and libraries derived from it
     "OMPI_MCA_pml", "OMPI_MCA_btl", "OMPI_MCA_osc", "OMPI_MCA_mtl", "OMPI_MCA_coll",
     "OMPI_MCA_coll_hcoll_enable", "OMPI_MCA_coll_tuned_use_dynamic_rules",
     "OMPI_MCA_rmaps_base_mapping_policy", "OMPI_MCA_rmaps_base_oversubscribe",
     "OMPI_MCA_hwloc_base_binding_policy", "I_MPI_FABRICS", "I_MPI_PIN_DOMAIN",
     "MPICH_GPU_SUPPORT_ENABLED", "MPICH_OFI_NIC_POLICY", "MV2_USE_CUDA",
     // networks
     "UCX_TLS", "UCX_NET_DEVICES", "UCX_RNDV_SCHEME", "UCX_RNDV_THRESH", "UCX_MAX_RNDV_RAILS",
     "UCX_IB_GPU_DIRECT_RDMA", "UCX_IB_GID_INDEX", "UCX_IB_SL", "UCX_IB_TRAFFIC_CLASS",
     "UCX_MEMTYPE_CACHE", "UCX_CUDA_IPC_CACHE", "UCX_RNDV_FRAG_MEM_TYPE", "FI_PROVIDER",
     "FI_CXI_RX_MATCH_MODE", "FI_EFA_USE_DEVICE_RDMA",
     // devices
     "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS",
     "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_MPS_PIPE_DIRECTORY",
     "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_SCALE_LAUNCH_QUEUES", "CUBLAS_WORKSPACE_CONFIG",
     "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
     "CUBLAS_EMULATION_STRATEGY", "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES",
     // NCCL
     "NCCL_ALGO", "NCCL_PROTO", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY",
     "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "NCCL_IB_HCA", "NCCL_IB_DISABLE",
     "NCCL_IB_GID_INDEX", "NCCL_IB_SL", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT",
     "NCCL_IB_ADAPTIVE_ROUTING", "NCCL_IB_PCI_RELAXED_ORDERING", "NCCL_IB_SPLIT_DATA_ON_QPS",
     "NCCL_IB_MERGE_NICS", "NCCL_DMABUF_ENABLE", "NCCL_IB_TC", "NCCL_IB_QPS_PER_CONNECTION",
     "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_NET_GDR_LEVEL",
     "NCCL_NET_GDR_READ", "NCCL_NET_GDR_C2C", "NCCL_NET_SHARED_BUFFERS", "NCCL_P2P_DISABLE",
     "NCCL_P2P_LEVEL", "NCCL_P2P_DIRECT_DISABLE", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_P2P_PXN_LEVEL",
     "NCCL_NVB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_NVLS_NCHANNELS",
     "NCCL_MNNVL_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_CUMEM_HOST_ENABLE", "NCCL_COLLNET_ENABLE",
     "NCCL_CROSS_NIC", "NCCL_BUFFSIZE", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
     "NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER",
     "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_CGA_CLUSTER_SIZE", "NCCL_NTHREADS",
     "NCCL_TUNER_PLUGIN", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_LAUNCH_MODE",
     "NCCL_GRAPH_REGISTER", "NCCL_GRAPH_MIXING_SUPPORT", "NCCL_COMM_BLOCKING",
     "NCCL_IGNORE_CPU_AFFINITY", "NCCL_HOSTID", "NCCL_CONF_FILE", "NCCL_RUNTIME_CONNECT",
     "NCCL_PXN_DISABLE"});

/// Variables in which launchers give the numbers of processes, nodes and devices.
constexpr std::array launcher_names = std::to_array<std::string_view>(
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
     "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE", "SLURM_NNODES",
     "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES", "SLURM_CPUS_PER_TASK", "SLURM_GPUS_ON_NODE",
     "PBS_NP", "LSB_DJOB_NUMPROC", "FLUX_JOB_SIZE"});

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto value = base::number_in<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

/// Returns a count or rank that a launcher set; nullopt if it is unset or not a whole number of 0
/// or more.
std::optional<std::int64_t> number_of(const Lookup& environment, std::string_view name) {
  const std::optional<std::string> text = environment(name);
  return text ? whole_number(*text) : std::nullopt;
}

/// Returns the variables in `lists` that are set, with their values.
std::vector<std::pair<std::string, std::string>> set_of(
    std::initializer_list<std::span<const std::string_view>> lists, const Lookup& environment) {
  std::vector<std::pair<std::string, std::string>> recorded;
  for (const auto& names : lists) {
    for (const std::string_view name : names) {
      if (auto value = environment(name)) recorded.emplace_back(name, *std::move(value));
    }
  }
  return recorded;
}

std::string sentence(std::string_view evidence, std::string_view fix) {
  return fmt::format(
      "MPI reports one process in this job, but {}: the launcher that started the processes does "
      "not work with this MPI library, so each process would measure itself alone; {}",
      evidence, fix);
}

/// The share of the job's remaining time that the suggested --budget uses; MPI needs the rest to
/// start and to end.
constexpr double usable = 0.9;

/// Returns the seconds that a text like "3600" or "01:00:00" gives; nullopt for other texts.
std::optional<std::int64_t> duration(std::string_view text) {
  std::int64_t sum = 0;
  for (const std::string_view digits : base::split(text, ':')) {
    const auto part = whole_number(digits);
    // More than a century of seconds is no plausible duration, and could overflow the sum.
    if (!part || *part > 3'200'000'000 || sum > 3'200'000'000) return std::nullopt;
    sum = 60 * sum + *part;
  }
  return sum;
}

/// Returns a value of --budget that fits into the time `left`: in whole minutes, or in seconds if
/// it is below ten minutes.
std::string budget_text(units::Seconds left) {
  const auto seconds = static_cast<std::int64_t>(usable * left.value());
  return seconds >= 600 ? fmt::format("{}m", seconds / 60) : fmt::format("{}s", seconds);
}

}  // namespace

Lookup process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string{name}.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
  };
}

std::vector<std::pair<std::string, std::string>> recorded_environment(const Lookup& environment) {
  return set_of({thread_names, job_names, library_names}, environment);
}

std::vector<std::pair<std::string, std::string>> recorded_settings(const Lookup& environment) {
  return set_of({thread_names, library_names}, environment);
}

std::map<std::string, std::int64_t> launcher_numbers(const Lookup& environment) {
  std::map<std::string, std::int64_t> numbers;
  for (const std::string_view name : launcher_names) {
    if (const auto value = number_of(environment, name)) numbers.emplace(name, *value);
  }
  return numbers;
}

std::optional<std::string> singleton_problem(int world, const Lookup& environment) {
  if (world != 1) return std::nullopt;
  constexpr std::string_view match_launcher =
      "start it with the mpirun or mpiexec that belongs to the MPI library isoscale was built "
      "with, or rebuild isoscale with the MPI of this launcher";
  bool launcher_known = false;
  for (const std::string_view name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    launcher_known = launcher_known || environment(name).has_value();
    const std::optional<std::int64_t> size = number_of(environment, name);
    if (size && *size > 1) {
      return sentence(fmt::format("{} says that there are {}", name, *size), match_launcher);
    }
  }
  if (launcher_known) return std::nullopt;
  constexpr std::string_view srun_fix =
      "use srun --mpi=pmix (srun --mpi=list shows what there is), or mpirun inside the allocation";
  if (const auto tasks = number_of(environment, "SLURM_STEP_NUM_TASKS"); tasks && *tasks > 1) {
    return sentence(fmt::format("SLURM_STEP_NUM_TASKS says that there are {}", *tasks), srun_fix);
  }
  if (const auto task = number_of(environment, "SLURM_PROCID"); task && *task > 0) {
    return sentence(fmt::format("SLURM_PROCID says that it is number {}", *task), srun_fix);
  }
  return std::nullopt;
}

bool speaks_for_launch(const Lookup& environment) {
  constexpr std::array<std::string_view, 4> rank_names{"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                       "PMI_RANK", "SLURM_PROCID"};
  for (const std::string_view name : rank_names) {
    if (const auto rank = environment(name)) return *rank == "0";
  }
  return true;
}

std::optional<TimeLimit> time_limit(const Lookup& environment, std::int64_t now) {
  if (const auto end = number_of(environment, "SLURM_JOB_END_TIME")) {
    const std::int64_t left = std::max<std::int64_t>(0, *end - now);
    return TimeLimit{.time = units::Seconds{static_cast<double>(left)},
                     .source = "SLURM_JOB_END_TIME"};
  }
  if (const auto text = environment("PBS_WALLTIME")) {
    if (const auto length = duration(*text)) {
      return TimeLimit{.time = units::Seconds{static_cast<double>(*length)},
                       .source = "PBS_WALLTIME",
                       .span = TimeLimit::Span::of_job};
    }
  }
  return std::nullopt;
}

std::optional<std::string> time_limit_warning(const std::optional<TimeLimit>& limit,
                                              units::Seconds expected) {
  if (!limit || expected <= limit->time) return std::nullopt;
  const std::string run =
      fmt::format("the run is expected to take {}, and its job ", units::format(expected));
  constexpr std::string_view lost = "points that are not finished by then are lost";
  if (limit->span == TimeLimit::Span::of_job) {
    return fmt::format(
        "{}may take at most {} as a whole ({}), of which some has passed: {}; give a --budget of "
        "what is left, and continue with --resume in another job",
        run, units::format(limit->time), limit->source, lost);
  }
  const std::string end =
      fmt::format("{}ends in {} ({})", run, units::format(limit->time), limit->source);
  if (usable * limit->time.value() < 1) return end + "; ask the scheduler for more time";
  return fmt::format(
      "{}: {}; --budget {} fits the run into the job; continue with --resume in another", end, lost,
      budget_text(limit->time));
}

}  // namespace isoscale::machine
