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

/// Executors that live in a shared object of their own, opened when a run asks for one: the program
/// itself links no device library.
namespace isoscale::executor {

/// The options of the CUDA executor.
struct CudaOptions {
  std::string gpu_bind{config::automatic_gpu_bind};  ///< as --gpu-bind gives it
  config::ShareGpu share = config::ShareGpu::no;
  config::Graph graph = config::Graph::off;
  config::Nvtx nvtx = config::Nvtx::off;
  units::Seconds communicator_timeout{120};  ///< to make one communicator; 0: for ever
  /// The assumed cost for a stream to say which op it begins (marks): they are put so far apart
  /// that all together cost a step little; 0: at every op. Absent: streams say nothing.
  std::optional<units::Seconds> mark_cost{1e-6};
  std::vector<GemmChoice> known_algorithms;  ///< used instead of timing the candidates
};

/// The functions that a plugin gives to the core. The first member never moves: it is read before
/// anything else is believed.
struct PluginTable {
  const char* fingerprint;
  /// Why this machine cannot play on the device, one sentence with the fix; "" when it can.
  std::string (*problem)();
  /// Collective over `world`; throws base::UsageError when a rank finds no GPU for itself.
  std::unique_ptr<Executor> (*make)(const CudaOptions& options, const comm::Communicator& world);
};
/// The one symbol of a plugin: `extern "C" const PluginTable* isoscale_plugin()`.
inline constexpr const char* plugin_entry = "isoscale_plugin";

/// The fingerprint of every header that core and plugin must agree on, and of the version; alike in
/// both when they come from one build.
[[nodiscard]] std::string_view core_fingerprint();

/// A plugin that is open. It stays open: its types live as long as the process.
struct Plugin {
  std::filesystem::path file;
  const PluginTable* table = nullptr;
};

/// A plugin, or why there is none.
struct PluginSearch {
  std::optional<Plugin> plugin;
  std::string problem;  ///< one sentence with the fix; "" when there is a plugin
};

/// Looks for `file_name` in `folders`, opens the first there is, and checks its fingerprint.
[[nodiscard]] PluginSearch open_plugin(std::string_view file_name,
                                       const std::vector<std::filesystem::path>& folders);
/// libisoscale_cuda.so beside the program, then in ../lib.
[[nodiscard]] PluginSearch open_cuda_plugin();

}  // namespace isoscale::executor
