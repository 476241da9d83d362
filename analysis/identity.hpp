// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/records/run_data.hpp"

/// The identity of runs: which files hold the same run, and which launches measured the same
/// experiment on the same machine with the same settings.
namespace isoscale::analysis {

/// The facts that all points of a curve have in common. The seed is not part of an experiment.
struct Experiment {
  std::string workload, model, dtype, scaling, placement;
  /// The options of the workload, without those that scaling itself changes. A skipped point has no
  /// options of the batch here, since it may have been skipped before these were known.
  std::map<std::string, std::string> options;
  /// The model's numbers at the mesh of one rank; empty where the point was skipped, since it then
  /// has no mesh.
  std::map<std::string, std::string> numbers;
  /// The settings of the launch for all its points (see settings_of); empty until launches are
  /// compared.
  std::map<std::string, std::string> settings{};
};

[[nodiscard]] Experiment experiment_of(const results::PointData& point);

/// A field in which two runs differ, and its value in either.
struct UnlikeField {
  std::string name, here, there;
};
/// Returns the fields that must match for two curves to be of one experiment, and do not: workload,
/// model and "model layers", dtype, scaling, placement, "option overlap", "setting fill". Unknown
/// numbers of the model and unknown batches agree with any.
[[nodiscard]] std::vector<UnlikeField> unlike_fields(const Experiment& here,
                                                     const Experiment& there);
/// Returns the entries that differ, each with `kind` before its name; an absent one has the value
/// `absent`.
[[nodiscard]] std::vector<UnlikeField> unlike_texts(std::string_view kind,
                                                    const std::map<std::string, std::string>& here,
                                                    const std::map<std::string, std::string>& there,
                                                    std::string_view absent = "not set");
/// Returns "CPU: A here, B there; MPI: ..."; "" without fields.
[[nodiscard]] std::string text_of(const std::vector<UnlikeField>& fields);

/// True if points of both experiments may stand on one curve: no field is unlike.
[[nodiscard]] bool are_alike(const Experiment& a, const Experiment& b);

/// Returns 16 hexadecimal digits that are equal on every machine for the same experiment on the
/// same kind of device ("host", "cuda") (FNV-1a, 64 bits).
[[nodiscard]] std::string fingerprint(const Experiment& experiment, std::string_view device);

/// Returns "dp, tiny, f32, strong scaling, packed" for each experiment, with the options and
/// numbers that distinguish it from others that would have the same title.
[[nodiscard]] std::vector<std::string> titles(const std::vector<Experiment>& experiments);

/// Returns the settings of a launch that apply to all its points and that their times depend on, as
/// text by name: fill, graph, gemm_algorithms, blas_threads, host_streams. A setting that the
/// configuration leaves out has its default. Empty where the configuration cannot be read and no
/// point played a graph.
[[nodiscard]] std::map<std::string, std::string> settings_of(const results::RunData& run);

/// True if an environment variable affects how ranks communicate, where they are bound or how many
/// threads they have. Variables that name a job, a rank, a device or a log do not.
[[nodiscard]] bool bears_on_times(std::string_view variable);

/// Returns the recorded environment variables that bear on times, with their values.
[[nodiscard]] std::map<std::string, std::string> environment_of(const results::RunData& run);

/// The hardware and software that a launch ran on, by name: CPU, GPU and their drivers and
/// libraries, device, MPI, Isoscale, and recorded environment variables that bear on times (see
/// bears_on_times). Launches that differ in any of these ran on different machines. Unknown or
/// unset entries are absent.
using Machine = std::map<std::string, std::string>;

[[nodiscard]] Machine machine_of(const results::RunData& run);

/// Returns the entries in which two machines differ, which a comparison is about but a curve over
/// launches does not have. Entries that are absent are "unset" or "unknown".
[[nodiscard]] std::vector<UnlikeField> unlike_machines(const Machine& here, const Machine& there);

/// The facts about a file that distinguish copies of one run.
struct FileContent {
  std::string id, file;
  std::size_t ok_points = 0, points = 0;
  bool complete = false;
  std::string ended;
};

/// The files to keep, in the order in which their runs were first met, and a sentence for each file
/// left out.
struct Distinct {
  std::vector<std::size_t> kept;
  std::vector<std::string> warnings;
};

/// Leaves out files that hold a launch a second time, since they would count as another launch. Of
/// files with one run id the most complete is kept, or the first if all are equally complete.
[[nodiscard]] Distinct distinct(const std::vector<FileContent>& files);

/// The contents of run files, one launch each, with the names of the files.
struct RunFiles {
  std::vector<results::RunData> runs;
  std::vector<std::string> files;     ///< name of each run's file
  std::vector<std::string> warnings;  ///< a sentence for each file that was left out
};

/// Keeps one file for each run.
[[nodiscard]] RunFiles without_copies(RunFiles given);

}  // namespace isoscale::analysis
