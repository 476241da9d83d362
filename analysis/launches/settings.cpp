// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/settings.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <optional>

namespace isoscale::analysis {
namespace {

constexpr std::array communication_and_threads = std::to_array<std::string_view>(
    {"NCCL_", "UCX_", "OMPI_MCA_", "I_MPI_", "MPICH_", "MV2_", "FI_", "CUDA_", "CUBLAS_",
     "NVIDIA_TF32_", "OMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_", "GOMP_", "KMP_"});

/// But for these, which say who ran where or what was logged. Whether ranks did share cores is a
/// label of the point.
constexpr std::array of_one_job = std::to_array<std::string_view>(
    {"NCCL_DEBUG", "NCCL_HOSTID", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
     "CUDA_MPS_PIPE_DIRECTORY", "OMPI_MCA_rmaps_base_oversubscribe"});

std::optional<toml::table> parsed(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return toml::parse(text);
  } catch (const toml::parse_error&) {
    return std::nullopt;  // of a file that something else wrote: the rest of it is still of use
  }
}

/// "ppr:4:node" maps as "ppr:8:node" does: how many ranks a node has is known of each point.
std::string without_count(const std::string& mapping) {
  constexpr std::string_view per_resource = "ppr:";
  const std::size_t end = mapping.find(':', per_resource.size());
  if (!mapping.starts_with(per_resource) || end == std::string::npos) return mapping;
  return "ppr" + mapping.substr(end);
}

}  // namespace

std::map<std::string, std::string> settings_of(const results::RunData& run) {
  std::map<std::string, std::string> settings;
  if (const std::optional<toml::table> config = parsed(run.config_toml)) {
    const bool graph = (*config)["graph"].value_or(false);
    settings = {
        {"fill", (*config)["fill"].value_or(std::string{"idle"})},
        {"graph", graph ? "on" : "off"},
        {"gemm_algorithms", (*config)["gemm_algorithms"].value_or(std::string{"chosen"})},
        {"blas_threads", std::to_string((*config)["blas_threads"].value_or(std::int64_t{1}))},
        {"host_streams", (*config)["host_streams"].value_or(std::string{"auto"})}};
  }
  const bool played =
      std::ranges::find(run.points, "on", &results::PointData::graph) != run.points.end();
  if (played) settings["graph"] = "on";
  return settings;
}

bool bears_on_times(std::string_view variable) {
  return std::ranges::any_of(communication_and_threads,
                             [&](std::string_view begin) { return variable.starts_with(begin); }) &&
         std::ranges::find(of_one_job, variable) == of_one_job.end();
}

std::map<std::string, std::string> environment_of(const results::RunData& run) {
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : run.environment) {
    if (!bears_on_times(name)) continue;
    settings[name] = name == "OMPI_MCA_rmaps_base_mapping_policy" ? without_count(value) : value;
  }
  return settings;
}

}  // namespace isoscale::analysis
