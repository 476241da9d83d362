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

/// Loads the executor of a device from a shared object when a run asks for the device, so that the
/// program itself does not link the device's libraries.
namespace isoscale::executor {

/// The options of the CUDA executor.
struct CudaOptions {
  std::string gpu_bind{settings::automatic_gpu_bind};  ///< the value of --gpu-bind
  settings::ShareGpu share = settings::ShareGpu::no;
  settings::Graph graph = settings::Graph::off;
  settings::Nvtx nvtx = settings::Nvtx::off;
  /// The time that the creation of one communicator may take; 0: no limit.
  units::Seconds communicator_timeout{120};
  /// The time that a GPU stream is assumed to need for a mark, a write to host memory that shows
  /// that an op has started. Only so many ops are marked that the marks of a stream take at most
  /// 0.5% of the least time that its ops need (see choose_marks() of the CUDA executor). 0: every
  /// op is marked. Absent: no op is marked.
  std::optional<units::Seconds> mark_cost{1e-6};
  /// GEMM algorithms that an earlier run chose by timing candidates. Each is used, without new
  /// timing, for the GEMM shape for which it was chosen.
  std::vector<GemmChoice> known_algorithms;
};

/// The functions that a plugin provides to the program that loads it, here called the core.
/// `fingerprint` is a text computed from the version and from every header that core and plugin
/// share, which is the same in both if they come from one build. It must stay the first member,
/// since the core compares it before it uses any other member.
struct PluginTable {
  const char* fingerprint;
  /// Returns one sentence with the reason why this machine cannot run programs on the device, and
  /// what to do about it; "" if it can.
  std::string (*problem)();
  /// Makes the executor. Collective over `world`. Throws base::UsageError if there is no GPU for
  /// one of the ranks.
  std::unique_ptr<Executor> (*make)(const CudaOptions& options, const comm::Communicator& world);
};
/// The name of the only symbol that a plugin exports: `extern "C" const PluginTable*
/// isoscale_plugin()`.
inline constexpr const char* plugin_entry = "isoscale_plugin";

/// The table of a loaded plugin, or the reason why there is none. A plugin is never unloaded, since
/// objects of its types may exist until the process ends.
struct PluginSearch {
  const PluginTable* table = nullptr;  ///< null: there is no plugin
  std::string problem;  ///< one sentence that also says what to do; "" if there is a plugin
};

/// Looks for the file `file_name` in `folders`, in this order, opens the first that exists, and
/// checks its fingerprint.
[[nodiscard]] PluginSearch open_plugin(std::string_view file_name,
                                       const std::vector<std::filesystem::path>& folders);
/// Opens libisoscale_cuda.so from the folder of the program or, if it is not there, from the folder
/// `lib` beside that folder.
[[nodiscard]] PluginSearch open_cuda_plugin();

}  // namespace isoscale::executor
