// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A plugin like libisoscale_cuda.so whose GPUs are stand-ins, so that tests can run the whole
// program. Environment: ISOSCALE_STANDIN_GPUS = how many GPUs the ranks of a node see, all the same
// ones; unset: each rank sees one of its own. ISOSCALE_STANDIN_MEMORY = bytes of each.
// ISOSCALE_STANDIN_REFUSES = what NCCL_ALGO must not hold. ISOSCALE_STANDIN_ENDLESS,
// ISOSCALE_STANDIN_FAULTY = rank:matmuls, after so many the next one on that rank never ends, or
// touches memory that it cannot reach. ISOSCALE_STANDIN_ENDLESS_COMMUNICATOR = the name of an NCCL
// communicator that is never ready. Every op is marked.
#include "executor/plugin.hpp"

#include <cstdlib>
#include <string>

#include "executor/cuda/device.hpp"
#include "executor/fingerprint.hpp"
#include "tests/cuda/devices.hpp"

namespace isoscale::standin {
namespace {

/// From "rank:count"; -1 for other ranks, or where the variable is not set.
int count_from(const char* variable, int rank) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return -1;
  const std::string text{value};
  const std::size_t colon = text.find(':');
  return std::stoi(text) == rank ? std::stoi(text.substr(colon + 1)) : -1;
}

std::unique_ptr<executor::Executor> make(const executor::CudaOptions& options,
                                         const comm::Communicator& world) {
  Settings settings;
  settings.seed = static_cast<std::uint64_t>(world.rank()) + 1;
  if (const char* const gpus = std::getenv("ISOSCALE_STANDIN_GPUS"); gpus != nullptr) {
    settings.gpus = std::stoi(gpus);
  } else {
    settings.first_gpu = world.rank();
  }
  if (const char* const memory = std::getenv("ISOSCALE_STANDIN_MEMORY"); memory != nullptr) {
    settings.gpu_memory = std::stoull(memory);
  }
  if (const char* const refused = std::getenv("ISOSCALE_STANDIN_REFUSES"); refused != nullptr) {
    settings.refused_algorithm = refused;
  }
  if (const char* const name = std::getenv("ISOSCALE_STANDIN_ENDLESS_COMMUNICATOR");
      name != nullptr) {
    settings.endless_communicator = name;
  }
  settings.endless_matmul = count_from("ISOSCALE_STANDIN_ENDLESS", world.rank());
  settings.faulty_matmul = count_from("ISOSCALE_STANDIN_FAULTY", world.rank());
  machine().reset(settings);
  executor::CudaOptions chosen = options;
  if (chosen.mark_cost) chosen.mark_cost = units::Seconds{};
  return std::make_unique<OnPoints>(executor::make_cuda_executor(chosen, world));
}

}  // namespace
}  // namespace isoscale::standin

extern "C" const isoscale::executor::PluginTable* isoscale_plugin() {
  static constexpr isoscale::executor::PluginTable table{
      .fingerprint = isoscale::executor::interface_fingerprint,
      .problem = isoscale::executor::cuda::device_problem,
      .make = isoscale::standin::make};
  return &table;
}
