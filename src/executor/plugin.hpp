// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"

/// Executors in a shared object of their own, which is opened when a run asks for one: the program
/// itself links no device library.
namespace isoscale::executor {

/// The options of the CUDA executor.
struct CudaOptions {
  std::string gpu_bind{config::automatic_gpu_bind};  ///< as --gpu-bind gives it
  config::ShareGpu share = config::ShareGpu::no;
  config::Graph graph = config::Graph::off;
  config::Nvtx nvtx = config::Nvtx::off;
  units::Seconds communicator_timeout{120};  ///< to make one communicator; 0: for ever
  /// The assumed cost of marking in a stream which op it begins: marks are placed so far apart that
  /// all together cost a step little; 0: at every op. Absent: streams write no marks.
  std::optional<units::Seconds> mark_cost{1e-6};
  std::vector<GemmChoice> known_algorithms;  ///< used instead of timing the candidates
};

/// The functions that a plugin gives to the core. The first member never moves: it is read and
/// compared before any other member is used.
struct PluginTable {
  const char* fingerprint;
  /// Says why this machine cannot play on the device, in one sentence with the fix; "" if it can.
  std::string (*problem)();
  /// Makes the executor. Collective over `world`; throws base::UsageError if a rank finds no GPU
  /// for itself.
  std::unique_ptr<Executor> (*make)(const CudaOptions& options, const comm::Communicator& world);
};
/// The only symbol that a plugin exports: `extern "C" const PluginTable* isoscale_plugin()`.
inline constexpr const char* plugin_entry = "isoscale_plugin";

/// Returns the fingerprint of every header that core and plugin must agree on, and of the version;
/// it is the same in both if they come from one build.
[[nodiscard]] std::string_view core_fingerprint();

/// A plugin that is open. It stays open, since its types live as long as the process.
struct Plugin {
  std::filesystem::path file;
  const PluginTable* table = nullptr;
};

/// A plugin, or the reason why there is none.
struct PluginSearch {
  std::optional<Plugin> plugin;
  std::string problem;  ///< one sentence with the fix; "" if there is a plugin
};

/// Looks for `file_name` in `folders`, opens the first that exists, and checks its fingerprint.
[[nodiscard]] PluginSearch open_plugin(std::string_view file_name,
                                       const std::vector<std::filesystem::path>& folders);
/// Opens libisoscale_cuda.so beside the program, or else in ../lib.
[[nodiscard]] PluginSearch open_cuda_plugin();

}  // namespace isoscale::executor
