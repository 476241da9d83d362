// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "machine/facts.hpp"
#include "machine/gpu_facts.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Returns the UUID as NVML and nvidia-smi write it: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// If GPUs are shared, sets environment variables that NCCL reads at its first use. NCCL_HOSTID is
/// always overwritten; the others keep a value that the user has set.
void set_environment(const ChosenGpu& chosen, const std::string& own_host) {
  if (!chosen.is_shared) return;
  ::setenv("NCCL_HOSTID", own_host.c_str(), 1);
  ::setenv("NCCL_NET", "Socket", 0);
  ::setenv("NCCL_MNNVL_ENABLE", "0", 0);  // otherwise NCCL treats one NVLink fabric as one host
}

std::string version_text(int encoded) {  // 13000 means 13.0
  return fmt::format("{}.{}", encoded / 1000, encoded % 1000 / 10);
}
std::string library_text(std::size_t encoded) {  // 22809 means 2.28.9
  return fmt::format("{}.{}.{}", encoded / 10000, encoded % 10000 / 100, encoded % 100);
}

/// Returns the reason why no program can use Transport::symmetric on this GPU with the running
/// NCCL, whose encoded version is `nccl`; "" if there is none. A program may still be refused when
/// it is prepared.
std::string symmetric_problem(int nccl, const ChosenGpu& chosen) {
  if (!has_puts()) {
    return fmt::format(
        "transport=symmetric needs NCCL 2.28 or newer, built with and run with: this is {}.{}",
        nccl / 10000, nccl % 10000 / 100);
  }
  if (chosen.is_shared)
    return "transport=symmetric needs a GPU for every rank, and ranks share one";
  return {};
}

/// Returns the GPUs that the CUDA runtime shows to this process.
std::vector<machine::VisibleGpu> visible_gpus() {
  int count = 0;
  check(cudaGetDeviceCount(&count));
  std::vector<machine::VisibleGpu> gpus;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index));
    std::array<char, 32> pci{};
    check(cudaDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size()), index));
    gpus.push_back({.index = index,
                    .uuid = uuid_text(properties.uuid),
                    .pci_bus_id = pci.data(),
                    .name = properties.name,
                    .major = properties.major,
                    .minor = properties.minor,
                    .memory = units::Bytes{properties.totalGlobalMem}});
  }
  return gpus;
}

/// The versions of the driver, the CUDA runtime and NCCL, each as its library encodes it; driver 0
/// means that there is no driver.
struct Versions {
  int driver = 0, runtime = 0, nccl = 0;
};

Versions versions() {
  Versions result;
  // Without a driver, cudaDriverGetVersion() succeeds and gives version 0.
  if (cudaDriverGetVersion(&result.driver) != cudaSuccess) result.driver = 0;
  check(cudaRuntimeGetVersion(&result.runtime));
  check(ncclGetVersion(&result.nccl));
  return result;
}

}  // namespace

bool gpu_is_lost() {
  const bool is_lost = cudaFree(nullptr) != cudaSuccess;
  static_cast<void>(cudaGetLastError());
  return is_lost;
}

std::string device_problem() {
  const Versions found = versions();
  if (const auto problem = machine::driver_problem(found.driver, found.runtime)) return *problem;
  if (const auto problem = machine::nccl_problem(found.nccl)) return *problem;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    if (status != cudaErrorNoDevice) {
      return fmt::format("the CUDA driver does not answer ({}): see what nvidia-smi says",
                         cudaGetErrorString(status));
    }
    count = 0;
  }
  if (count > 0) return "";
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return fmt::format(
      "CUDA shows no GPU{}: start the job on a machine with one (--gres=gpu:N or "
      "--gpus-per-node=N under Slurm), or use --device host",
      visible == nullptr ? std::string{} : fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", visible));
}

ChosenGpu take_gpu(const comm::Communicator& world, const std::string& bind,
                   settings::ShareGpu share) {
  const comm::Communicator node = world.split_node();
  machine::GpuView view{.visible = {},
                        .local_rank = node.rank(),
                        .seen_by = {},
                        .host = host_name(),
                        .visible_devices = std::nullopt};
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    view.visible_devices = visible;
  }
  agreed<base::UsageError>(world, [&] {
    const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
    if (blocking != nullptr && std::string_view{blocking} == "0") {
      throw base::UsageError(
          "NCCL_COMM_BLOCKING=0 is set: NCCL would start work later than it says, and times would "
          "be wrong; unset it");
    }
    view.visible = visible_gpus();
  });
  std::vector<std::string> uuids;
  for (const machine::VisibleGpu& gpu : view.visible) uuids.push_back(gpu.uuid);
  for (const std::string& line : node.all_gather(fmt::format("{}", fmt::join(uuids, " ")))) {
    view.seen_by.push_back(words_of(line));
  }

  ChosenGpu chosen;
  agreed<base::UsageError>(world, [&] {
    const int index = machine::choose_gpu(view, bind, share);
    chosen.gpu = view.visible.at(static_cast<std::size_t>(index));
  });
  std::vector<machine::GpuUse> uses;
  const std::vector<int> ranks = node.ranks_in(world);
  for (const std::string& bus_id : node.all_gather(chosen.gpu.pci_bus_id)) {
    uses.push_back({.rank = ranks[uses.size()], .pci_bus_id = bus_id});
  }
  agreed<base::UsageError>(world, [&] {
    machine::refuse_shared_gpus(uses, view.host, share);
    check(cudaSetDevice(chosen.gpu.index));
    check(cudaFree(nullptr));  // makes the CUDA context; fails if this process may not use the GPU
  });
  chosen.is_shared = world.all_max(machine::share_a_gpu(uses) ? 1.0 : 0.0) > 0;
  set_environment(chosen, fmt::format("{}-{}", view.host, world.rank()));
  return chosen;
}

Description description_of(const ChosenGpu& chosen, const machine::NvmlLibrary& nvml) {
  const Versions found = versions();
  const machine::VisibleGpu& gpu = chosen.gpu;
  Description description;
  description.name = "cuda";
  description.detail = fmt::format("{}, CUDA {}, cuBLASLt {}, NCCL {}", gpu.name,
                                   version_text(found.runtime), library_text(cublasLtGetVersion()),
                                   library_text(static_cast<std::size_t>(found.nccl)));
  constexpr int ten = 10;
  description.compute_capability = ten * gpu.major + gpu.minor;
  description.precisions = machine::precisions_of(gpu.major, gpu.minor);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  description.memory_free = units::Bytes{free};
  description.memory_pool = gpu.uuid;
  description.cores = static_cast<int>(machine::machine_facts().bound_core_ids.size());
  description.shared_device = chosen.is_shared;
  description.symmetric_problem = symmetric_problem(found.nccl, chosen);

  if (const auto facts = machine::gpu_facts(nvml, gpu.uuid)) {
    description.facts_text = machine::gpu_facts_text(*facts);
    description.facts_number = machine::gpu_facts_number(*facts);
  }
  // The following facts come from CUDA itself, so they are known even without NVML.
  description.facts_text["gpu_name"] = gpu.name;
  description.facts_text["gpu_uuid"] = gpu.uuid;
  description.facts_text["gpu_pci"] = machine::sysfs_bus_id(gpu.pci_bus_id);
  description.facts_text["cuda_driver"] = version_text(found.driver);
  description.facts_text["cuda_runtime"] = version_text(found.runtime);
  description.facts_text["cublas"] = library_text(cublasLtGetVersion());
  description.facts_text["nccl"] = library_text(static_cast<std::size_t>(found.nccl));
  description.facts_number["gpu_memory"] = static_cast<double>(gpu.memory.value());
  int cache = 0;
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, gpu.index));
  description.facts_number["gpu_l2_cache"] = cache;
  return description;
}

}  // namespace isoscale::executor::cuda
