// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

// All code that depends on the version of NCCL is in this file.

#include <nccl.h>

#include <cstddef>
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
#include <nccl_device.h>
#endif

#if defined(__CUDACC__)  // for kernels: nvcc cannot handle the includes below

namespace isoscale::executor::cuda {

/// Returns the address by which this GPU accesses the byte at `offset` in the window of rank
/// `peer`.
__device__ inline void* peer_address([[maybe_unused]] void* window,
                                     [[maybe_unused]] std::size_t offset,
                                     [[maybe_unused]] int peer) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  return ncclGetPeerPointer(static_cast<ncclWindow_t>(window), offset, peer);
#else
  return nullptr;  // never called: has_puts() is false
#endif
}

}  // namespace isoscale::executor::cuda

#else

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "workloads/api/nccl_algorithms_and_protocols.hpp"

// Functions that came after NCCL 2.18 are weak symbols, so that the plugin can be loaded although
// the running NCCL may lack them.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
#pragma weak ncclCommDeregister
#pragma weak ncclCommRegister
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
#pragma weak ncclGroupSimulateEnd
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
#pragma weak ncclCommWindowDeregister
#pragma weak ncclCommWindowRegister
#endif

/// Declares functions of the running NCCL whose arguments differ between versions. The declarations
/// are those of NCCL 2.28 and 2.29, also if the build uses headers of another version.
namespace isoscale::executor::cuda::nccl {

/// The beginning of ncclCommProperties_t, with room for members that later versions append.
struct Properties {
  std::size_t size = 40;  ///< size of the struct in NCCL 2.29
  unsigned magic = 0xcafebeef, version = NCCL_VERSION(2, 29, 2);
  int rank = 0, ranks = 0, cuda_device = 0, nvml_device = 0;
  bool device_api = false;
  std::array<std::byte, 1007> rest{};
};
static_assert(offsetof(Properties, device_api) == 32);

/// The layout of ncclTeam_t.
struct Team {
  int ranks, rank, stride;
};

[[gnu::weak]] Team mapped_team(ncclComm_t communicator) __asm__("ncclTeamLsa");
[[gnu::weak]] ncclResult_t query_properties(
    ncclComm_t communicator, Properties* properties) __asm__("ncclCommQueryProperties");
[[gnu::weak]] ncclResult_t create_device_communicator(ncclComm_t communicator,
                                                      const void* requirements,
                                                      void* made) __asm__("ncclDevCommCreate");
[[gnu::weak]] ncclResult_t destroy_device_communicator(
    ncclComm_t communicator, const void* made) __asm__("ncclDevCommDestroy");

}  // namespace isoscale::executor::cuda::nccl

namespace isoscale::executor::cuda {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0),
              "isoscale needs NCCL 2.18 or newer: ncclCommSplit came with it");

/// Returns the encoded version of the NCCL library that is loaded; 0 if it is unknown.
[[nodiscard]] inline int running_nccl() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}
/// True if both the headers of the build and the running NCCL have a feature that came with
/// `version`.
[[nodiscard]] inline bool nccl_offers(int version) {
  return NCCL_VERSION_CODE >= version && running_nccl() >= version;
}

/// Tells if a call computes with elements or only moves them.
enum class Use : std::uint8_t { moved, reduced };

/// Returns NCCL's enumerator for an element type. NCCL moves fp8 as bytes, since before 2.28 it has
/// no call on fp8 for GPUs older than sm_90. Throws base::Error for types that this NCCL cannot
/// reduce.
[[nodiscard]] inline ncclDataType_t nccl_type(program::DType type, Use use) {
  constexpr ncclDataType_t none = ncclNumTypes;
  // The types are in the order of the enumerators of DType; the types of fp8 follow below.
  static_assert(program::DType::u8 == program::DType{9});
  constexpr std::array types{ncclFloat64, ncclFloat32, ncclFloat16, ncclBfloat16, none,
                             none,        ncclInt64,   ncclInt32,   ncclInt8,     ncclUint8};
  const ncclDataType_t known = types.at(static_cast<std::size_t>(type));
  if (known != none) return known;
  if (use == Use::moved) return ncclUint8;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
  if (nccl_offers(NCCL_VERSION(2, 24, 0))) {
    if (type == program::DType::e4m3) return ncclFloat8e4m3;
    if (type == program::DType::e5m2) return ncclFloat8e5m2;
  }
#endif
  throw base::Error(fmt::format("NCCL {}.{} does not know {}", running_nccl() / 10000,
                                running_nccl() % 10000 / 100, program::name(type)));
}

/// All aborts between begin_joint_abort() and end_joint_abort() run at the same time; before NCCL
/// 2.22 they run one after the other.
inline void begin_joint_abort() noexcept {
  if (nccl_offers(NCCL_VERSION(2, 22, 0))) static_cast<void>(ncclGroupStart());
}
inline void end_joint_abort() noexcept {
  if (nccl_offers(NCCL_VERSION(2, 22, 0))) static_cast<void>(ncclGroupEnd());
}

/// Ends an open group without starting its calls. `microseconds` receives the time that NCCL
/// expects them to take, negative if NCCL gives no estimate. Requires has_estimates().
[[nodiscard]] inline ncclResult_t end_group_estimated([[maybe_unused]] double& microseconds) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  const ncclResult_t result = ncclGroupSimulateEnd(&info);
  microseconds = static_cast<double>(info.estimatedTime);
  return result;
#else
  return ncclInvalidUsage;
#endif
}
[[nodiscard]] inline bool has_estimates() { return nccl_offers(NCCL_VERSION(2, 22, 0)); }

// Registering memory needs NCCL 2.19. Symmetric windows, which have the same layout on all ranks,
// need NCCL 2.27.
[[nodiscard]] inline bool has_registration() { return nccl_offers(NCCL_VERSION(2, 19, 0)); }
[[nodiscard]] inline bool has_windows() { return nccl_offers(NCCL_VERSION(2, 27, 0)); }
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
using NcclWindow = ncclWindow_t;
[[nodiscard]] inline ncclResult_t add_window(ncclComm_t communicator, void* memory,
                                             std::size_t bytes, NcclWindow& window) {
  return ncclCommWindowRegister(communicator, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC);
}
[[nodiscard]] inline ncclResult_t remove_window(ncclComm_t communicator, NcclWindow window) {
  return ncclCommWindowDeregister(communicator, window);
}
#else
using NcclWindow = void*;
[[nodiscard]] inline ncclResult_t add_window(ncclComm_t, void*, std::size_t, NcclWindow&) {
  return ncclInvalidUsage;
}
[[nodiscard]] inline ncclResult_t remove_window(ncclComm_t, NcclWindow) { return ncclSuccess; }
#endif

/// The consecutive ranks of a communicator whose windows this GPU can map, so that its kernels can
/// read and write them (NCCL's LSA team).
struct Mapped {
  int first = 0, count = 0;
  [[nodiscard]] bool contains(int rank) const { return rank >= first && rank < first + count; }
};
// The program's own kernels that write to windows (puts, for transport=symmetric) need NCCL 2.28.
[[nodiscard]] inline bool has_puts() { return nccl_offers(NCCL_VERSION(2, 28, 0)); }
/// Requires has_puts().
[[nodiscard]] inline Mapped mapped_ranks(ncclComm_t communicator, int rank) {
  const nccl::Team team = nccl::mapped_team(communicator);
  if (team.stride != 1) return {.first = rank, .count = 1};
  return {.first = rank - team.rank, .count = team.ranks};
}

/// False if the running NCCL is 2.28 and the communicator spans nodes. maps_windows() must not be
/// called then: it would start NCCL's network for kernels, which may fail.
[[nodiscard]] inline bool can_ask_for_windows(ncclComm_t communicator) {
  const int running = running_nccl();
  if (running < NCCL_VERSION(2, 28, 0) || running >= NCCL_VERSION(2, 29, 0)) return true;
  const int mapped = nccl::mapped_team(communicator).ranks;  // 0: NCCL makes no windows at all
  int ranks = 0;
  return mapped == 0 || (ncclCommCount(communicator, &ranks) == ncclSuccess && mapped == ranks);
}

/// Sets `yes` to true if the GPUs of a communicator can map each other's windows, and always before
/// NCCL 2.28. If they cannot, NCCL 2.28 still makes windows, but maps only the local one.
/// Collective over the communicator. Requires can_ask_for_windows().
[[nodiscard]] inline ncclResult_t maps_windows(ncclComm_t communicator, bool& yes) {
  yes = true;
  if (running_nccl() < NCCL_VERSION(2, 28, 0))
    return ncclSuccess;  // NCCL 2.27 makes a null window if they cannot
  if (running_nccl() >= NCCL_VERSION(2, 29, 0)) {
    nccl::Properties properties{};
    const ncclResult_t result = nccl::query_properties(communicator, &properties);
    yes = properties.device_api;
    return result;
  }
  // If GPUs cannot map windows, NCCL 2.28 refuses to make a device communicator. If all bytes of
  // the requirements are 0, the device communicator has no resources and fits into `made`.
  alignas(16) std::array<std::byte, 512> requirements{};
  alignas(16) std::array<std::byte, 4096> made{};
  const ncclResult_t result =
      nccl::create_device_communicator(communicator, requirements.data(), made.data());
  yes = result != ncclInvalidUsage;
  if (!yes) return ncclSuccess;
  if (result != ncclSuccess) return result;
  return nccl::destroy_device_communicator(communicator, made.data());
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
[[nodiscard]] inline ncclResult_t take_memory(void** to, std::size_t bytes) {
  return ncclMemAlloc(to, bytes);
}
[[nodiscard]] inline ncclResult_t give_memory_back(void* memory) { return ncclMemFree(memory); }
[[nodiscard]] inline ncclResult_t add_memory(ncclComm_t communicator, void* memory,
                                             std::size_t bytes, void*& handle) {
  return ncclCommRegister(communicator, memory, bytes, &handle);
}
[[nodiscard]] inline ncclResult_t remove_memory(ncclComm_t communicator, void* handle) {
  return ncclCommDeregister(communicator, handle);
}
#else
[[nodiscard]] inline ncclResult_t take_memory(void**, std::size_t) { return ncclInvalidUsage; }
[[nodiscard]] inline ncclResult_t give_memory_back(void*) { return ncclSuccess; }
[[nodiscard]] inline ncclResult_t add_memory(ncclComm_t, void*, std::size_t, void*&) {
  return ncclInvalidUsage;
}
[[nodiscard]] inline ncclResult_t remove_memory(ncclComm_t, void*) { return ncclSuccess; }
#endif

/// Returns the value of NCCL_ALGO that selects an algorithm. From NCCL 2.24 on, the value applies
/// only to the collectives that support the algorithm; before, it applies to all collectives.
[[nodiscard]] inline std::string algorithm_setting(
    const workloads::CollectiveAlgorithm& algorithm) {
  if (running_nccl() < NCCL_VERSION(2, 24, 0)) return std::string{algorithm.nccl_name};
  using program::CollectiveKind;
  static constexpr std::array<std::pair<CollectiveKind, const char*>, 5> functions{
      {{CollectiveKind::all_reduce, "AllReduce"},
       {CollectiveKind::reduce_scatter, "ReduceScatter"},
       {CollectiveKind::all_gather, "AllGather"},
       {CollectiveKind::broadcast, "Broadcast"},
       {CollectiveKind::reduce, "Reduce"}}};
  std::string text;
  for (const auto& [kind, function] : functions) {
    if (!algorithm.does(kind)) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ";", function, algorithm.nccl_name);
  }
  return text;
}

/// Gives a communicator a name, which must outlive it. Without effect before NCCL 2.26, which
/// introduced names.
inline void set_name([[maybe_unused]] ncclConfig_t& config,
                     [[maybe_unused]] const std::string& name) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 0)
  config.commName = name.c_str();
#endif
}

}  // namespace isoscale::executor::cuda

#endif
