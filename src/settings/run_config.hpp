// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"
#include "mesh/mesh_request.hpp"
#include "settings/injection.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The configurations of a run and of the other commands: what the user asked for on the command
/// line and in TOML files.
namespace isoscale::settings {

enum class Device : std::uint8_t { automatic, cuda, host };
[[nodiscard]] std::string_view name(Device device);

/// The task of the ranks that a measured configuration (point) does not use. idle: they sleep.
/// replicas: groups of them run copies of it; ranks that are too few for one more copy sleep.
enum class FillIdle : std::uint8_t { idle, replicas };
[[nodiscard]] std::string_view name(FillIdle fill);

/// The threads on which a rank on the host runs the streams of a program: one for each stream, or
/// one for all ("folded"). automatic: folded if the rank has fewer than two cores, or if MPI does
/// not let several threads communicate.
enum class HostStreams : std::uint8_t { automatic, threads, folded };
[[nodiscard]] std::string_view name(HostStreams streams);

/// The points that --resume measures again: those that failed, or also those that hung.
enum class Retry : std::uint8_t { failed, hung };
[[nodiscard]] std::string_view name(Retry retry);

/// The rank counts of a curve if the user names none. With n started ranks, doubling: the powers of
/// two up to n, and n itself; every: all counts from 1 to n.
enum class RankCounts : std::uint8_t { doubling, every };

/// Says if several ranks may use one GPU; this is for checking results, never for measuring.
enum class ShareGpu : std::uint8_t { no, yes };
/// Says if each step is executed as one captured CUDA graph.
enum class Graph : std::uint8_t { off, on };
/// Says if steps, phases and ops are marked as NVTX ranges, which profilers show.
enum class Nvtx : std::uint8_t { off, on };
/// The value of --gpu-bind with which the program chooses the GPUs.
inline constexpr std::string_view automatic_gpu_bind = "auto";

enum class IfExists : std::uint8_t { refuse, overwrite };
enum class Verbosity : std::uint8_t { normal, quiet };
enum class Mode : std::uint8_t { measure, dry_run };

/// One workload and model, measured over several rank counts. A suite has several experiments.
struct Experiment {
  std::string workload;
  /// The request for a single rank, which is later scaled to each mesh. Its options are as the user
  /// gave them, and have been checked.
  workloads::Request base;
  mesh::Request mesh;  ///< axes that the user named; empty = the workload's usual mesh
  workloads::Scaling scaling = workloads::Scaling::strong;
  mesh::Placement placement = mesh::Placement::packed;
  int max_ranks = 0;  ///< the largest rank count that is measured; 0 = no limit

  bool operator==(const Experiment&) const = default;
};

/// The models and settings that a suite has for GPUs. If a run finds GPUs, it measures the first of
/// these models that fits their memory and `longest_step` (the last model if none fits), in place
/// of the suite's own model.
struct GpuWork {
  std::vector<workloads::Model> models;  ///< the largest first
  program::Precision precision = program::Precision::bf16;
  workloads::Options options{};   ///< values for those workloads that have these options
  units::Seconds longest_step{};  ///< limit for the step time on a single rank

  bool operator==(const GpuWork&) const = default;
};

struct RunConfig {
  std::vector<Experiment> experiments;
  Device device = Device::automatic;
  std::vector<int> ranks;  ///< rank counts named by the user, ascending; empty = see rank_counts
  RankCounts rank_counts = RankCounts::doubling;
  std::optional<int> ranks_per_node;  ///< number of ranks on each node, for dry runs
  FillIdle fill = FillIdle::idle;
  int blas_threads = 1;  ///< per rank
  HostStreams host_streams = HostStreams::automatic;
  ShareGpu share_gpu = ShareGpu::no;
  Mode mode = Mode::measure;
  Verbosity verbosity = Verbosity::normal;
  /// "auto", or names of GPUs between commas, one for each rank of a node.
  std::string gpu_bind{automatic_gpu_bind};

  /// The steps of a point, or of a case of a micro-benchmark, end when the confidence interval of
  /// their median time has at most this relative half-width.
  double precision = 0.01;
  units::Seconds max_time{30};           ///< target for the time of all steps of one point
  std::optional<units::Seconds> soak{};  ///< time to replay each point's step; absent = no replays
  /// If a rank makes no progress for this time, all ranks are asked for their states, and the job
  /// is ended if it hangs; 0 = never.
  units::Seconds timeout{120};
  std::optional<units::Seconds> budget;  ///< limit for the time of the whole run; absent = none
  int trace_steps = 4;                   ///< steps per point whose op times (spans) are kept
  int trace_ranks = 64;                  ///< ranks per point whose op times (spans) are kept
  Graph graph = Graph::off;
  Nvtx nvtx = Nvtx::off;
  IfExists if_exists = IfExists::refuse;  ///< the reaction if the file `output` exists already
  std::vector<Injection> injections;      ///< faults put in on purpose
  std::filesystem::path gemm_algorithms;  ///< run file with the algorithms to use; "" = choose anew

  std::filesystem::path output;  ///< empty = isoscale-<workloads>-<host>-<UTC time>.h5 here
  /// The folder in which the run file continues if it cannot be written at its own place. Empty =
  /// the folder in the variable TMPDIR or, if that is not set, /tmp.
  std::filesystem::path fallback_dir;
  std::vector<std::string> allowed;  ///< preflight checks that must not stop the run
  /// The run file to resume, whose missing points are measured; empty for a new run. With --resume,
  /// the command line may only give `retry`, `budget`, `allowed` and `verbosity`; resumed() takes
  /// all other settings from the run file.
  std::filesystem::path resume;
  Retry retry = Retry::failed;
  /// The data sheet (a name or a file) that gives the times of a dry run; "" = typical rates.
  std::string on;
  std::string command_line;  ///< the command line with which the run was started, shell-quoted
  std::string suite;         ///< name of the suite, "" when none
  /// Set if a suite has work for GPUs, and the user chose no model, no element type and no option
  /// of a workload with training steps. Before a run begins, it is applied to the experiments and
  /// removed, so to_toml() does not write it.
  std::optional<GpuWork> on_gpus{};

  bool operator==(const RunConfig&) const = default;
};

/// The formats in which commands print; each command has some of them.
enum class Format : std::uint8_t { text, json, csv, markdown, junit, nccl_tests };
[[nodiscard]] std::string_view name(Format format);

/// The command `isoscale check`: runs the preflight checks on the started ranks, and nothing else.
struct CheckCommand {
  RunConfig config;  ///< only device, BLAS threads, GPUs and `allowed` matter
  Format format = Format::text;
};
struct ReportCommand {
  std::vector<std::filesystem::path> files;
  Format format = Format::text;
  std::optional<int> baseline;          ///< rank count; absent = that of the first point that is ok
  bool whole_node = false;              ///< the baseline is the first point that fills a node
  std::optional<std::string> detail{};  ///< "all", or sections between commas; absent = a summary
  bool index_only = false;              ///< print only an index of the files
  std::filesystem::path trace;          ///< where traces are written for a viewer; empty = nowhere
  std::filesystem::path html;           ///< where the report is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

/// The options of a comparison.
struct CompareOptions {
  std::optional<int> baseline{};     ///< rank count; absent = first point that is ok on all sides
  bool whole_node = false;           ///< the baseline is the first point that fills a node
  std::optional<double> gate{};      ///< a relative loss of throughput above this fails: 0.05 = 5%
  bool strict = false;               ///< fail also if the gate cannot decide
  bool anyway = false;               ///< compare even if settings differ, and say so in the result
  std::vector<std::string> names{};  ///< names of the sides; empty = named by file or machine
};

struct CompareCommand : CompareOptions {
  std::vector<std::vector<std::filesystem::path>> sides;  ///< two or more, each with its run files
  Format format = Format::text;
  std::filesystem::path html{};  ///< where the comparison is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

struct PredictCommand {
  std::filesystem::path source;  ///< a run file, or a data sheet: a name or a .toml file
  std::vector<std::filesystem::path> launches;  ///< further runs of the same experiment
  std::vector<int> ranks;                       ///< ascending, at least one
  std::string workload;  ///< "" = that of the run's first curve, or hybrid for a data sheet
  std::optional<workloads::Model> model;  ///< absent = that of the run
  std::string model_source{};             ///< the value of --model; "" = not given
  /// The data sheet or run whose network replaces the source's; "" = none.
  std::string network{};
  /// The software profile that replaces the data sheet's; "" = none.
  std::string software{};
  /// The element type; absent = the run's, or bf16 for a data sheet.
  std::optional<program::Precision> precision;
  /// The kind of scaling; absent = the run's, or strong for a data sheet.
  std::optional<workloads::Scaling> scaling;
  /// The axes that the user named. If there are none and `best` is false, the prediction uses the
  /// mesh of the run or, for a data sheet, the workload's usual mesh.
  mesh::Request mesh;
  bool best = false;  ///< search for the fastest mesh and options
  /// Workload options, and what-if changes of the machine: key and value in the order given.
  std::vector<std::pair<std::string, std::string>> settings;
  std::optional<int> node_ranks;  ///< ranks on a node; absent = as measured, or as the sheet says
  bool no_noise = false;          ///< leave out the noise of a data sheet
  bool each_rank = false;         ///< simulate every rank, noise and slow ranks included
  std::optional<int> baseline;    ///< rank count; absent = first measured, else first predicted
  Format format = Format::text;
  std::filesystem::path html{};  ///< where the prediction is written as a page; empty = nowhere
  IfExists if_exists = IfExists::refuse;
};

/// Returns those of the given options that have no effect without a GPU, such as "--graph,
/// --share-gpu"; "" if there are none.
[[nodiscard]] std::string gpu_options_given(const RunConfig& config);

/// Returns the configuration as canonical TOML, which the run file keeps and from_toml() reads
/// back. Models that are not built in are written out, so that no other file is needed.
[[nodiscard]] std::string to_toml(const RunConfig& config);
/// Reads an experiment file. Throws base::UsageError, which names the line and the key.
[[nodiscard]] RunConfig from_toml(std::string_view toml, std::string_view origin);

/// Returns the configuration of a run that --resume continues. Most settings come from `toml`, the
/// configuration in the run file; the path of this file, `retry`, the budget, the allowed checks
/// and the verbosity come from `asked`. Throws base::UsageError if `toml` cannot be read.
[[nodiscard]] RunConfig resumed(const RunConfig& asked, std::string_view toml);

}  // namespace isoscale::settings
