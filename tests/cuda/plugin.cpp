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

#include "executor/fingerprint.hpp"
#include "tests/cuda/devices.hpp"

namespace isoscale::standin {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(("ISOSCALE_STANDIN_" + name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>{value};
}

/// From "rank:count"; -1 for other ranks, or where the variable is not set.
int count_from(const char* name, int rank) {
  const std::string text = variable(name).value_or("-1:-1");
  return std::stoi(text) == rank ? std::stoi(text.substr(text.find(':') + 1)) : -1;
}

std::unique_ptr<executor::Executor> make(const executor::CudaOptions& options,
                                         const comm::Communicator& world) {
  Settings settings;
  settings.seed = static_cast<std::uint64_t>(world.rank()) + 1;
  const auto gpus = variable("GPUS");
  settings.gpus = std::stoi(gpus.value_or("1"));
  settings.first_gpu = gpus ? 0 : world.rank();
  if (const auto memory = variable("MEMORY")) settings.gpu_memory = std::stoull(*memory);
  settings.refused_algorithm = variable("REFUSES").value_or("");
  settings.endless_communicator = variable("ENDLESS_COMMUNICATOR").value_or("");
  settings.endless_matmul = count_from("ENDLESS", world.rank());
  settings.faulty_matmul = count_from("FAULTY", world.rank());
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
