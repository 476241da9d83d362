// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <set>
#include <system_error>

#include "base/folder.hpp"
#include "system/cgroup.hpp"
#include "system/preflight/node_settings.hpp"
#include "system/sample_files.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

bool is_plugin(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes{"libnccl-net", "libnccl-tuner",
                                                     "libnccl-profiler", "libnccl-env", "libsharp"};
  return name.find(".so") != std::string_view::npos &&
         std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Calls `use` with each part of a text between separators.
template <class Use>
void each_part(std::string_view text, char separator, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::optional<std::vector<std::string>> nccl_plugins(const fs::path& root,
                                                     const Lookup& environment) {
  std::set<std::string> names;
  bool looked = false;
  each_part(environment("LD_LIBRARY_PATH").value_or(""), ':', [&](std::string_view folder) {
    std::error_code failure;
    if (folder.empty() || !fs::is_directory(below(root, folder), failure)) return;
    looked = true;
    for (const fs::path& file : base::entries_of(below(root, folder), "lib")) {
      if (is_plugin(file.filename().string())) names.insert(file.filename().string());
    }
  });
  // Its strings, each ended by a zero, are names and paths of libraries (ldconfig(8)).
  if (const auto cache = read_file((root / "etc/ld.so.cache").string())) {
    looked = true;
    each_part(*cache, '\0', [&](std::string_view text) {
      const std::size_t slash = text.rfind('/');
      if (slash == std::string_view::npos) return;
      if (is_plugin(text.substr(slash + 1))) names.emplace(text.substr(slash + 1));
    });
  }
  if (!looked) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace isoscale::system
