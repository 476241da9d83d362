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
#include "executor/executor.hpp"
#include "settings/run_config.hpp"

/// Loads executors from shared objects when a run asks for one, so that the program itself does
/// not link the libraries of a device.
namespace isoscale::executor {

/// The options of the CUDA executor.
struct CudaOptions {
  std::string gpu_bind{settings::automatic_gpu_bind};  ///< the value of --gpu-bind
  settings::ShareGpu share = settings::ShareGpu::no;
  settings::Graph graph = settings::Graph::off;
  settings::Nvtx nvtx = settings::Nvtx::off;
  units::Seconds communicator_timeout{120};  ///< to make one communicator; 0: no limit
  /// The assumed time that a stream needs to mark the start of an op in host memory. Only so many
  /// ops are marked that marks take at most 0.5% of a section's time (choose_marks() in
  /// cuda/stream_words.hpp). 0: every op is marked; absent: no op is marked.
  std::optional<units::Seconds> mark_cost{1e-6};
  std::vector<GemmChoice> known_algorithms;  ///< used instead of timing candidates
};

/// The functions that a plugin provides to the core. `fingerprint` must stay the first member,
/// since the core compares it before it uses any other member.
struct PluginTable {
  const char* fingerprint;
  /// Returns the reason why this machine cannot play on the device, in one sentence with the fix;
  /// "" if it can.
  std::string (*problem)();
  /// Makes the executor. Collective over `world`; throws base::UsageError if a rank finds no GPU
  /// for itself.
  std::unique_ptr<Executor> (*make)(const CudaOptions& options, const comm::Communicator& world);
};
/// The name of the only symbol that a plugin exports: `extern "C" const PluginTable*
/// isoscale_plugin()`.
inline constexpr const char* plugin_entry = "isoscale_plugin";

/// Returns the fingerprint of the version and of every header on which core and plugin must agree.
/// It is the same in both if they come from one build.
[[nodiscard]] std::string_view core_fingerprint();

/// The table of an open plugin, or the reason why there is none. A plugin is never closed, since
/// objects of its types may exist until the process ends.
struct PluginSearch {
  const PluginTable* table = nullptr;  ///< null: there is no plugin
  std::string problem;                 ///< one sentence with the fix; "" if there is a plugin
};

/// Opens the first file that exists under the name `file_name` in `folders`, and checks its
/// fingerprint.
[[nodiscard]] PluginSearch open_plugin(std::string_view file_name,
                                       const std::vector<std::filesystem::path>& folders);
/// Opens libisoscale_cuda.so beside the program, or else in ../lib.
[[nodiscard]] PluginSearch open_cuda_plugin();

}  // namespace isoscale::executor
