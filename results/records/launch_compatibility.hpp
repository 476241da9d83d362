// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/records/run_data.hpp"

/// Lists the fields in which launches must agree, or may differ. By these fields, merging,
/// comparing and the catalog of runs identify a machine, --resume decides if a launch may continue
/// a run, and preflight checks if all ranks use the same software. Points:
/// analysis/experiment_and_machine_identity.hpp.
namespace isoscale::results {

/// Says if a field must have the same value in a launch that continues a run (--resume) as before.
enum class WhenResumed : unsigned char { must_match, may_differ };

/// A text that exists once for each launch, such as the compiler.
struct LaunchField {
  std::string_view name;
  std::string RunData::*text;
  /// The entry in the description of a machine to which the text belongs; "" = launches on one
  /// machine may differ in it.
  std::string_view machine;
  WhenResumed when_resumed = WhenResumed::must_match;
};
inline constexpr auto launch_fields = std::to_array<LaunchField>(
    {{"Isoscale", &RunData::isoscale_version, "Isoscale"},
     {"git hash", &RunData::git_hash, "Isoscale"},
     {"compiler", &RunData::compiler, ""},
     {"build type", &RunData::build_type, "Isoscale"},
     {"device", &RunData::device, "device"},
     {"details of the device", &RunData::device_detail, "device", WhenResumed::may_differ},
     {"MPI library", &RunData::mpi_library, "MPI"}});

/// A fact of a rank (RankFacts::text) on which its times depend. UUIDs and addresses are not in the
/// list, since a rank may run on other hardware of the same kind.
struct RankField {
  std::string_view key;
  std::string_view machine;  ///< as in LaunchField
  WhenResumed when_resumed = WhenResumed::must_match;
  /// True if the fact is the version of software that the executor uses; all ranks should have the
  /// same version.
  bool is_version = false;
};
inline constexpr auto rank_fields =
    std::to_array<RankField>({{"cpu_model", "CPU"},
                              {"device", ""},
                              {"gpu_name", "GPU"},
                              {"gpu_driver", "GPU driver"},
                              {"cuda_driver", "CUDA driver", WhenResumed::may_differ, true},
                              {"cuda_runtime", "CUDA runtime", WhenResumed::must_match, true},
                              {"cublas", "cuBLAS", WhenResumed::must_match, true},
                              {"nccl", "NCCL", WhenResumed::must_match, true},
                              {"cpu_quota", ""}});

/// True if an environment variable may affect times, that is, how ranks communicate, where they are
/// bound, how many threads they have and how they compute: if its name begins like those of NCCL,
/// CUDA, MPI, UCX, libfabric, BLAS or OpenMP, except for the few that do not affect times
/// (of_one_launch in launch_compatibility.cpp), such as NCCL_DEBUG.
[[nodiscard]] bool bears_on_times(std::string_view variable);
/// False for variables for which a launch that continues a run may have another value, such as
/// NCCL_DEBUG, which controls logging, and CUDA_VISIBLE_DEVICES, which selects devices.
[[nodiscard]] bool must_match_when_resumed(std::string_view variable);

/// A field in which two runs differ, and its value in each of them.
struct UnlikeField {
  std::string name, here, there;
};
/// Returns the entries in which two maps differ. `kind`, such as "option ", is put before each
/// name. An entry that only one map has gets the value `absent` for the other.
[[nodiscard]] std::vector<UnlikeField> unlike_texts(std::string_view kind,
                                                    const std::map<std::string, std::string>& here,
                                                    const std::map<std::string, std::string>& there,
                                                    std::string_view absent = "not set");

}  // namespace isoscale::results
