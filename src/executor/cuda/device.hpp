// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "machine/gpu_choice.hpp"

namespace isoscale::executor::cuda {

/// What is known before anything is played. Versions as CUDA and NCCL encode them; driver 0 = none.
struct Versions {
  int driver = 0, runtime = 0, nccl = 0;
};
[[nodiscard]] Versions versions();

/// Why this machine cannot play on a GPU: no driver, an old one, an old NCCL, no GPU. "" when it
/// can.
[[nodiscard]] std::string device_problem();

/// The GPUs that the CUDA runtime shows to this process.
[[nodiscard]] std::vector<machine::VisibleGpu> visible_gpus();

/// The GPU of this rank, made current for the calling thread.
struct ChosenGpu {
  machine::VisibleGpu gpu;
  /// Ranks of the node that are on one GPU with another (which only --share-gpu allows).
  bool is_shared = false;
};
/// Collective over `world`: every rank takes its GPU, or all throw base::UsageError. Where GPUs are
/// shared, gives each rank an NCCL_HOSTID of its own: NCCL refuses two ranks of one host on one
/// GPU, and then joins them through sockets.
[[nodiscard]] ChosenGpu take_gpu(const comm::Communicator& world, const std::string& bind,
                                 config::ShareGpu share);

}  // namespace isoscale::executor::cuda
