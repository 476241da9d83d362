// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "executor/fingerprint.hpp"

namespace isoscale::executor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view cuda_plugin_name = "libisoscale_cuda.so";

PluginSearch refused(std::string problem) {
  return {.table = nullptr, .problem = std::move(problem)};
}

std::string dl_problem() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

PluginSearch open_file(const fs::path& file) {
  // With RTLD_NOW, dlopen fails at once if the plugin calls a function that no library has, which
  // would otherwise fail in a run. RTLD_LOCAL hides the plugin's symbols from other libraries.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return refused(
        fmt::format("the CUDA plugin {} cannot be opened ({}): make the CUDA libraries visible "
                    "(LD_LIBRARY_PATH, or the module of the cluster), or use --device host",
                    file.string(), dl_problem()));
  }
  using Entry = const PluginTable* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, plugin_entry));
  const PluginTable* const table = entry == nullptr ? nullptr : entry();
  if (table == nullptr || table->fingerprint == nullptr) {
    return refused(
        fmt::format("{} is not an Isoscale plugin: remove it, or install the one that "
                    "was built with this program",
                    file.string()));
  }
  if (std::string_view{interface_fingerprint} != table->fingerprint) {
    return refused(fmt::format(
        "the CUDA plugin {} is of another build ({}) than this program ({}): install both from one "
        "build",
        file.string(), table->fingerprint, interface_fingerprint));
  }
  return {.table = table, .problem = {}};
}

}  // namespace

PluginSearch open_plugin(std::string_view file_name, const std::vector<fs::path>& folders) {
  std::vector<std::string> looked_in;
  for (const fs::path& folder : folders) {
    const fs::path file = folder / file_name;
    std::error_code unreadable;
    if (fs::exists(file, unreadable)) return open_file(file);
    looked_in.push_back(folder.string());
  }
  return refused(fmt::format(
      "there is no CUDA plugin ({} in {}): build isoscale where the CUDA Toolkit and NCCL are "
      "installed (cmake -DISOSCALE_CUDA=ON says what is missing), or use --device host",
      file_name, fmt::join(looked_in, " or ")));
}

PluginSearch open_cuda_plugin() {
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return open_plugin(cuda_plugin_name, {folder, (folder / ".." / "lib").lexically_normal()});
}

}  // namespace isoscale::executor
