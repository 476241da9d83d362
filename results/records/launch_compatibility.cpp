// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/launch_compatibility.hpp"

#include <algorithm>
#include <utility>

namespace isoscale::results {
namespace {

constexpr auto communication_and_threads = std::to_array<std::string_view>(
    {"NCCL_", "UCX_", "OMPI_MCA_", "I_MPI_", "MPICH_", "MV2_", "FI_", "CUDA_", "CUBLAS_",
     "NVIDIA_TF32_", "OMP_", "OPENBLAS_", "GOTO_", "MKL_", "BLIS_", "GOMP_", "KMP_"});

struct LaunchVariable {
  std::string_view name;
  WhenResumed when_resumed;
};
/// Environment variables that do not affect times: they select devices, name a host or a folder, or
/// control logging. OMPI_MCA_rmaps_base_oversubscribe is in the list because a label of the point
/// already tells if ranks shared cores.
constexpr auto of_one_launch =
    std::to_array<LaunchVariable>({{"NCCL_DEBUG", WhenResumed::may_differ},
                                   {"NCCL_HOSTID", WhenResumed::may_differ},
                                   {"CUDA_VISIBLE_DEVICES", WhenResumed::may_differ},
                                   {"NVIDIA_VISIBLE_DEVICES", WhenResumed::may_differ},
                                   {"CUDA_DEVICE_ORDER", WhenResumed::must_match},
                                   {"CUDA_MPS_PIPE_DIRECTORY", WhenResumed::must_match},
                                   {"OMPI_MCA_rmaps_base_oversubscribe", WhenResumed::must_match}});

}  // namespace

bool bears_on_times(std::string_view variable) {
  return std::ranges::any_of(communication_and_threads,
                             [&](std::string_view begin) { return variable.starts_with(begin); }) &&
         std::ranges::find(of_one_launch, variable, &LaunchVariable::name) == of_one_launch.end();
}

bool must_match_when_resumed(std::string_view variable) {
  const auto found = std::ranges::find(of_one_launch, variable, &LaunchVariable::name);
  return found == of_one_launch.end() || found->when_resumed == WhenResumed::must_match;
}

std::vector<UnlikeField> unlike_texts(std::string_view kind,
                                      const std::map<std::string, std::string>& here,
                                      const std::map<std::string, std::string>& there,
                                      std::string_view absent) {
  const auto value = [absent](const std::map<std::string, std::string>& texts,
                              const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string{absent} : found->second;
  };
  std::map<std::string, std::string> all = here;
  all.insert(there.begin(), there.end());
  std::vector<UnlikeField> fields;
  for (const auto& [name, unused] : all) {
    UnlikeField at{std::string{kind} + name, value(here, name), value(there, name)};
    if (at.here != at.there) fields.push_back(std::move(at));
  }
  return fields;
}

}  // namespace isoscale::results
