// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "executor/plugin.hpp"
#include "machine/gpu_choice.hpp"
#include "machine/nvml_library.hpp"
#include "settings/run_config.hpp"

/// Chooses and describes the GPU of a rank, and makes the executor that runs programs on it.
namespace isoscale::executor::cuda {

/// True if CUDA refuses every call of this process after an earlier fault on the GPU, such as an
/// illegal address.
[[nodiscard]] bool gpu_is_lost();

/// Collective over `point`: runs `work`. If `work` throws on any rank, all ranks throw: Unsupported
/// if all errors are Unsupported, NeverReady if all are Unsupported or NeverReady, otherwise Error.
/// With AgreedError, which fails one point only, a rank whose GPU is lost throws its own error,
/// which ends the job: no later point could run.
template <class Error = base::AgreedError, class Work>
void agreed(const comm::Communicator& point, const Work& work) {
  std::string problem;
  constexpr double never_ready = 1, fails = 2;
  double severity = 0;
  try {
    work();
  } catch (const Unsupported& error) {
    problem = error.what();
  } catch (const NeverReady& error) {
    problem = error.what();
    severity = never_ready;
  } catch (const std::exception& error) {
    if constexpr (std::is_same_v<Error, base::AgreedError>) {
      if (gpu_is_lost()) throw;
    }
    problem = error.what();
    severity = fails;
  }
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) {
    const double most = point.all_max(severity);
    if (most == 0) throw Unsupported(vote.why);
    if (most == never_ready) throw NeverReady(vote.why);
    throw Error(vote.why);
  }
}

/// Returns the reason why this machine cannot run programs on a GPU: no driver, an old driver, a
/// driver that does not answer, an old NCCL, or no GPU. Returns "" if it can.
[[nodiscard]] std::string device_problem();

/// The GPU of this rank, made current for the calling thread.
struct ChosenGpu {
  machine::VisibleGpu gpu;
  /// True on all ranks if any two ranks of the launch use the same GPU (--share-gpu allows it).
  bool is_shared = false;
};
/// Collective over `world`: every rank takes its GPU, or all throw base::UsageError. If ranks share
/// a GPU, each rank gets an NCCL_HOSTID of its own: NCCL refuses two ranks of one host on one GPU,
/// but joins ranks of different hosts through sockets.
[[nodiscard]] ChosenGpu take_gpu(const comm::Communicator& world, const std::string& bind,
                                 settings::ShareGpu share);

/// Describes the GPU and its software.
[[nodiscard]] Description description_of(const ChosenGpu& chosen, const machine::NvmlLibrary& nvml);

}  // namespace isoscale::executor::cuda

namespace isoscale::executor {

/// Makes the executor with cuBLASLt and NCCL on this rank's GPU. Collective over `world`; throws
/// base::UsageError on all ranks if one finds no GPU for itself.
[[nodiscard]] std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options,
                                                           const comm::Communicator& world);

}  // namespace isoscale::executor
