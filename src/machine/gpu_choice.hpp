// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/dtypes_and_buffers.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

/// Chooses the GPU of a rank, or explains why none can be used, with pure functions of the facts
/// that CUDA and MPI report. Every error message is one sentence that includes the fix.
namespace isoscale::machine {

/// A GPU that is visible to this rank; `index` is its number in the rank's CUDA runtime, which
/// applies CUDA_VISIBLE_DEVICES.
struct VisibleGpu {
  int index = 0;
  std::string uuid, pci_bus_id, name;
  int major = 0, minor = 0;  ///< compute capability
  units::Bytes memory;
};

/// The facts that the choice depends on. The ranks of a node are indexed by their local rank, which
/// is their rank in the communicator of the node (MPI_COMM_TYPE_SHARED).
struct GpuView {
  std::vector<VisibleGpu> visible;  ///< the GPUs that this rank sees, by index
  int local_rank = 0;
  std::vector<std::vector<std::string>> seen_by;  ///< UUIDs that each rank of the node sees
  std::string host;
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES of this rank
};

/// Returns the index of the GPU that the rank takes. `bind` is the value of --gpu-bind. If `bind`
/// is a list, the rank takes the GPU that the list gives for its local rank. The list must have one
/// GPU for each rank of the node, and this rank must see its GPU. If `bind` is "auto", there are
/// two cases. If each rank of the node sees exactly one GPU but not all see the same one, the rank
/// takes the GPU that it sees. Otherwise the rank takes the GPU at the position in `visible` that
/// is its local rank. In this second case, if `share` is yes, the position is taken modulo the
/// number of visible GPUs; if `share` is no, all ranks of the node must see the same GPUs, and at
/// least as many GPUs as there are ranks. Throws base::UsageError if one of these conditions is not
/// met, or if no GPU is visible.
[[nodiscard]] int choose_gpu(const GpuView& view, const std::string& bind,
                             settings::ShareGpu share);

/// A rank of the launch and the GPU that it took. MIG instances of one GPU have its PCI bus id, by
/// which NCCL tells GPUs apart.
struct GpuUse {
  int rank = 0;
  std::string pci_bus_id;
};
/// True if two of these ranks use the same GPU.
[[nodiscard]] bool share_a_gpu(std::span<const GpuUse> uses);
/// Throws base::UsageError if two ranks of a node use the same GPU, or MIG instances of it, and
/// `share` is no.
void refuse_shared_gpus(std::span<const GpuUse> uses, const std::string& host,
                        settings::ShareGpu share);

/// Returns the precisions in which cuBLASLt can multiply on a GPU of this compute capability: f64
/// and f32 on every GPU, f16 from 5.3, bf16 and tf32 from 8.0, fp8 from 8.9 (CUDA C++ Programming
/// Guide, arithmetic by compute capability; cuBLAS documentation of cublasLtMatmul).
[[nodiscard]] std::vector<program::Precision> precisions_of(int major, int minor);

/// Returns the reason why the driver is too old for the runtime; nullopt if it is new enough. Both
/// are versions as CUDA encodes them (13000 = 13.0; `driver_version` 0: no driver). A driver of the
/// runtime's major version (CUDA's minor version compatibility) or of a later one is new enough.
[[nodiscard]] std::optional<std::string> driver_problem(int driver_version, int runtime_version);
/// Returns the reason why this version of NCCL (22707 = 2.27.7) is too old; nullopt if it is new
/// enough. Isoscale needs ncclCommSplit, which came with 2.18.
[[nodiscard]] std::optional<std::string> nccl_problem(int version);

}  // namespace isoscale::machine
