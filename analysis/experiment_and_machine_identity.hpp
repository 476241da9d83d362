// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/records/launch_compatibility.hpp"
#include "results/records/run_data.hpp"

/// Decides which files hold the same run, and which launches measured the same experiment on the
/// same machine with the same settings.
namespace isoscale::analysis {

using results::bears_on_times;
using results::unlike_texts;
using results::UnlikeField;

/// The facts that all points of a curve have in common. The seed is not part of an experiment.
struct Experiment {
  std::string workload, model, dtype, scaling, placement;
  /// The options of the workload (see full_options), without the effect of scaling: strong scaling
  /// leaves out microbatch and microbatches, weak scaling batch, and it divides the number of
  /// experts by ep. A skipped point, whose values may not be known, has none of the four.
  std::map<std::string, std::string> options{};
  /// The sizes of the model ("layers", "heads"), divided by the axes of the mesh by which weak
  /// scaling multiplies them. Empty for a skipped point, whose mesh may not be known.
  std::map<std::string, std::string> numbers;
  /// The settings of the launch (see settings_of), filled in when launches are joined or compared.
  std::map<std::string, std::string> settings{};
};

[[nodiscard]] Experiment experiment_of(const results::PointData& point);

/// Returns the point's option `key` as text; "" if the point's file has no such option.
[[nodiscard]] std::string option_of(const results::PointData& point, const std::string& key);

/// Returns the options of a point, with defaults for those that it lacks: an older version's file
/// lacks options added later, and its run behaved as their defaults say. Empty if it has none.
[[nodiscard]] std::map<std::string, std::string> full_options(const results::PointData& point);

/// Returns the fields in which two experiments differ: workload, model, dtype, scaling, placement,
/// sizes of the model ("model layers"), options ("option overlap") and settings ("setting fill").
/// Sizes, and options that scaling itself changes, are compared only if both experiments have them.
[[nodiscard]] std::vector<UnlikeField> unlike_fields(const Experiment& here,
                                                     const Experiment& there);
/// Returns the fields in which two points of one experiment with the same number of ranks differ:
/// mesh, work, options, injected faults, and unsound labels such as "oversubscribed". The number of
/// nodes, which comparisons of machines allow to differ, is not compared.
[[nodiscard]] std::vector<UnlikeField> unlike_fields(const results::PointData& here,
                                                     const results::PointData& there);
/// Returns the fields as text, "CPU: A here, B there; MPI: ..."; "" if there are none.
[[nodiscard]] std::string text_of(const std::vector<UnlikeField>& fields);

/// Returns the workload, model, dtype, scaling and placement of a point. Points that agree in all
/// of these form a family.
[[nodiscard]] std::vector<std::string> family_of(const results::PointData& point);
/// True if points of both experiments may be on one curve: unlike_fields() returns nothing.
[[nodiscard]] bool are_alike(const Experiment& a, const Experiment& b);

/// Returns a hash of an experiment and the device it ran on ("host", "cuda"), as 16 hexadecimal
/// digits (64-bit FNV-1a). The same experiment has the same hash on every machine.
[[nodiscard]] std::string fingerprint(const Experiment& experiment, std::string_view device);

/// Returns a title for each experiment, "dp, tiny, f32, strong scaling, packed", followed by the
/// options, sizes and settings that distinguish it from others with the same beginning.
[[nodiscard]] std::vector<std::string> titles(const std::vector<Experiment>& experiments);

/// Returns the settings of a launch that affect the times of all its points, as text by name: fill,
/// graph, gemm_algorithms, blas_threads, host_streams. Settings that the configuration lacks have
/// their defaults; without a valid configuration the result has at most graph=on (CUDA graphs).
[[nodiscard]] std::map<std::string, std::string> settings_of(const results::RunData& run);

/// The hardware and software that a launch ran on, by name: the entries that
/// results/records/launch_compatibility.hpp lists, and the recorded environment variables that
/// affect times. Launches that differ in any of these ran on different machines. Unknown entries
/// are absent.
using Machine = std::map<std::string, std::string>;

/// Returns all values of a fact over the ranks of a launch, as "A + B"; "" if no rank has it.
[[nodiscard]] std::string values_of(const results::RunData& run, std::string_view fact);
[[nodiscard]] Machine machine_of(const results::RunData& run);

/// Returns the entries in which two machines differ. The text of a missing environment variable is
/// "unset", that of any other missing entry "unknown".
[[nodiscard]] std::vector<UnlikeField> unlike_machines(const Machine& here, const Machine& there);

/// The properties of a file by which distinct() chooses among copies of one run.
struct FileContent {
  std::string id, file;
  std::size_t ok_points = 0, points = 0;
  bool complete = false;
  std::string ended;
};

/// Leaves out copies of a run, each of which would count as another launch: of several files with
/// the same run id it keeps the most complete one, or the first of equally complete ones. Returns
/// the indices of the files to keep, in the order in which their runs first occurred, and adds a
/// warning for each file that it leaves out.
[[nodiscard]] std::vector<std::size_t> distinct(const std::vector<FileContent>& files,
                                                std::vector<std::string>& warnings);

/// The contents of result files, one run each, with the names of the files.
struct RunFiles {
  std::vector<results::RunData> runs{};
  std::vector<std::string> files{};     ///< name of each run's file
  std::vector<std::string> warnings{};  ///< a sentence for each file that was left out
};

/// Keeps one file for each run (see distinct) and adds a warning for each file that it leaves out.
[[nodiscard]] RunFiles without_copies(RunFiles given);

}  // namespace isoscale::analysis
