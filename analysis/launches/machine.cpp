// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "analysis/launches/settings.hpp"

namespace isoscale::analysis {
namespace {

/// All values of a fact over the ranks of a launch, "A + B".
std::string values_of(const results::RunData& run, const std::string& fact) {
  std::set<std::string> values;
  for (const results::RankFacts& facts : run.rank_facts) {
    const auto found = facts.text.find(fact);
    if (found != facts.text.end()) values.insert(found->second);
  }
  return fmt::format("{}", fmt::join(values, " + "));
}

}  // namespace

Machine machine_of(const results::RunData& run) {
  std::string device = run.device;
  if (!run.device_detail.empty()) device += ", " + run.device_detail;
  std::string program = run.isoscale_version;
  for (const std::string& part : {run.git_hash, run.build_type}) {
    if (!part.empty()) program += ", " + part;
  }
  Machine machine{{"CPU", values_of(run, "cpu_model")},
                  {"GPU", values_of(run, "gpu_name")},
                  {"GPU driver", values_of(run, "gpu_driver")},
                  {"CUDA driver", values_of(run, "cuda_driver")},
                  {"CUDA runtime", values_of(run, "cuda_runtime")},
                  {"cuBLAS", values_of(run, "cublas")},
                  {"NCCL", values_of(run, "nccl")},
                  {"device", device},
                  {"MPI", run.mpi_library.substr(0, run.mpi_library.find(','))},
                  {"Isoscale", program}};
  std::erase_if(machine, [](const auto& entry) { return entry.second.empty(); });
  machine.merge(environment_of(run));
  return machine;
}

std::string differences(const Machine& here, const Machine& there) {
  const auto value = [](const Machine& machine, const std::string& name) {
    const auto found = machine.find(name);
    if (found != machine.end()) return found->second;
    return std::string{bears_on_times(name) ? "unset" : "unknown"};
  };
  Machine all = here;
  all.insert(there.begin(), there.end());
  std::string text;
  for (const auto& [name, unused] : all) {
    if (value(here, name) == value(there, name)) continue;
    text += fmt::format("{}{}: {} here, {} there", text.empty() ? "" : "; ", name,
                        value(here, name), value(there, name));
  }
  return text;
}

}  // namespace isoscale::analysis
