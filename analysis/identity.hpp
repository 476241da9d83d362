// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/run_data.hpp"

/// The identity of runs: which files hold the same run, and which launches measured the same
/// experiment on the same machine with the same settings.
namespace isoscale::analysis {

/// An experiment is what all points of a curve have in common. The seed is no part of it.
struct Experiment {
  std::string workload, model, dtype, scaling, placement;
  /// Without those that scaling itself changes; of a skipped point without any of the batch, since
  /// it may have been skipped before these were known.
  std::map<std::string, std::string> options;
  /// The model's numbers at the mesh of one rank; empty where the point was skipped, since it then
  /// has no mesh.
  std::map<std::string, std::string> numbers;
  /// The settings of the launch for all points (see settings_of); empty until launches are
  /// compared.
  std::map<std::string, std::string> settings{};
};

[[nodiscard]] Experiment experiment_of(const results::PointData& point);

/// True if points of both may stand on one curve. Numbers of a model and batches that are
/// not known are like any.
[[nodiscard]] bool are_alike(const Experiment& a, const Experiment& b);

/// 16 hexadecimal digits that are the same for the same experiment on the same kind of device
/// ("host", "cuda"), on every machine (FNV-1a, 64 bits).
[[nodiscard]] std::string fingerprint(const Experiment& experiment, std::string_view device);

/// "dp, tiny, f32, strong scaling, packed" of each, with the options and numbers that tell it from
/// others that would else have the same title.
[[nodiscard]] std::vector<std::string> titles(const std::vector<Experiment>& experiments);

/// The settings that a launch was given for all its points and their times depend on, as text by
/// name: fill, graph, gemm_algorithms, blas_threads, host_streams. What its configuration leaves
/// out has its default; empty where the configuration cannot be read and no point played a graph.
[[nodiscard]] std::map<std::string, std::string> settings_of(const results::RunData& run);

/// True if an environment variable bears on how ranks communicate, where they are bound and how
/// many threads they have. Those that name a job, a rank, a device or a log do not.
[[nodiscard]] bool bears_on_times(std::string_view variable);

/// The recorded environment variables that bear on times, with their values.
[[nodiscard]] std::map<std::string, std::string> environment_of(const results::RunData& run);

/// A machine is what a launch ran on and with, by name: CPU, GPU and their drivers and libraries,
/// device, MPI, Isoscale, and recorded environment variables that bear on times (see
/// bears_on_times). Times of launches that differ in any of it are those of different machines.
/// Entries that are not known, or not set, are absent.
using Machine = std::map<std::string, std::string>;

[[nodiscard]] Machine machine_of(const results::RunData& run);

/// "CPU: A here, B there; MPI: ..."; "" for like machines.
[[nodiscard]] std::string differences(const Machine& here, const Machine& there);

/// The content of a file, as far as it takes to tell copies apart.
struct FileContent {
  std::string id, file;
  std::size_t ok_points = 0, points = 0;
  bool complete = false;
  std::string ended;
};

/// The files that are to be kept, ascending in where their run was first met, and a sentence for
/// each that is not.
struct Distinct {
  std::vector<std::size_t> kept;
  std::vector<std::string> warnings;
};

/// Leaves out those that hold a launch a second time, which would count as a launch more: of files
/// with one run id the most complete is kept, else the first.
[[nodiscard]] Distinct distinct(const std::vector<FileContent>& files);

/// The contents of run files, each a launch, beside the names they were read from.
struct RunFiles {
  std::vector<results::RunData> runs;
  std::vector<std::string> files;     ///< of each
  std::vector<std::string> warnings;  ///< a sentence for each file that was left out
};

/// Keeps the distinct ones.
[[nodiscard]] RunFiles without_copies(RunFiles given);

}  // namespace isoscale::analysis
