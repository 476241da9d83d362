// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/injection.hpp"
#include "mesh/mesh.hpp"
#include "mesh/request.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// From the command line and TOML files to one frozen record of what was asked for. The only reader
/// of argv.
namespace isoscale::config {

enum class Device : std::uint8_t { automatic, cuda, host };
[[nodiscard]] std::string_view name(Device device);

/// The work of ranks outside a point: sleep, or run replicas of it.
enum class FillIdle : std::uint8_t { idle, replicas };
[[nodiscard]] std::string_view name(FillIdle fill);

/// The way in which a rank on the host plays the streams of a program: folded into one thread, or
/// on a thread each; by default folded where the rank has fewer than two cores.
enum class HostStreams : std::uint8_t { automatic, threads, folded };
[[nodiscard]] std::string_view name(HostStreams streams);

/// The rank counts of a curve when none are named: powers of two up to the world, and the world;
/// or every count from 1 to the world.
enum class RankCounts : std::uint8_t { doubling, every };

/// Says whether several ranks may use one GPU: to check results, never to measure.
enum class ShareGpu : std::uint8_t { no, yes };
/// Says whether each step is played as one captured CUDA graph.
enum class Graph : std::uint8_t { off, on };
/// Says whether steps, phases and ops are NVTX ranges, which profilers show.
enum class Nvtx : std::uint8_t { off, on };
/// The value of --gpu-bind that leaves the choice to the program.
inline constexpr std::string_view automatic_gpu_bind = "auto";

enum class IfExists : std::uint8_t { refuse, overwrite };
enum class Verbosity : std::uint8_t { normal, quiet };
enum class Mode : std::uint8_t { measure, dry_run };

/// One set of curves: one workload and model over rank counts. A suite is several of them.
struct Experiment {
  std::string workload;
  workloads::Request base;  ///< at the mesh of one rank; options validated, as given
  mesh::Request mesh;       ///< axes the user named; empty = the workload's natural mesh
  workloads::Scaling scaling = workloads::Scaling::strong;
  mesh::Placement placement = mesh::Placement::packed;
  int max_ranks = 0;  ///< larger counts have no point; 0 = no limit

  bool operator==(const Experiment&) const = default;
};

/// The work of a suite on GPUs, of which the runner takes what suits those that it finds.
struct GpuWork {
  std::vector<workloads::Model> models;  ///< the largest first
  workloads::Precision precision = workloads::Precision::bf16;
  workloads::Options options{};   ///< of those workloads that know them
  units::Seconds longest_step{};  ///< of one rank alone

  bool operator==(const GpuWork&) const = default;
};

struct RunConfig {
  std::vector<Experiment> experiments;
  Device device = Device::automatic;
  std::vector<int> ranks;  ///< as named, ascending; empty = as rank_counts says
  RankCounts rank_counts = RankCounts::doubling;
  std::optional<int> ranks_per_node;  ///< of a dry run: planned, whatever was started
  FillIdle fill = FillIdle::idle;
  int blas_threads = 1;  ///< per rank
  HostStreams host_streams = HostStreams::automatic;
  ShareGpu share_gpu = ShareGpu::no;
  Mode mode = Mode::measure;
  Verbosity verbosity = Verbosity::normal;
  std::string gpu_bind{automatic_gpu_bind};  ///< or one GPU per local rank, see parse_gpu_bind()

  double precision = 0.01;               ///< relative half-width of the interval to stop at
  units::Seconds max_time{30};           ///< per point
  std::optional<units::Seconds> soak{};  ///< that each point's step is replayed for; absent: not
  units::Seconds timeout{120};           ///< without progress, until a hang is told of; 0 = never
  std::optional<units::Seconds> budget;  ///< of the whole run; absent = as long as it takes
  int trace_steps = 4;                   ///< traced steps kept per point
  int trace_ranks = 64;                  ///< ranks whose spans are kept
  Graph graph = Graph::off;
  Nvtx nvtx = Nvtx::off;
  IfExists if_exists = IfExists::refuse;  ///< of `output`
  std::vector<Injection> injections;      ///< faults put in on purpose
  std::filesystem::path gemm_algorithms;  ///< run file whose choices are used; empty = choose

  std::filesystem::path output;        ///< empty = isoscale-<workloads>-<host>-<UTC time>.h5 here
  std::filesystem::path fallback_dir;  ///< where the run file goes on; empty = TMPDIR, else /tmp
  std::vector<std::string> allowed;    ///< checks of preflight whose stop lets the run go on
  /// Run file whose missing points are measured; then nothing else here but `budget`, `allowed`
  /// and `verbosity` is meant, and there are no experiments. Empty = a new
  /// run.
  std::filesystem::path resume;
  std::string on;  ///< data sheet that prices a dry run, a name or a file; "" = the device's rates
  std::string command_line;  ///< as typed, shell-quoted
  std::string suite;         ///< name of the suite, "" when none
  /// Set where a suite has work for GPUs and the user chose no model, type or option. It is settled
  /// before a run begins, so to_toml() does not have it.
  std::optional<GpuWork> on_gpus{};

  bool operator==(const RunConfig&) const = default;
};

/// `isoscale check`: preflight for the ranks that are there, nothing measured after it.
struct CheckCommand {
  enum class Format : std::uint8_t { text, json };
  RunConfig config;  ///< of which only device, BLAS threads, GPUs and what is allowed are looked at
  Format format = Format::text;
};
[[nodiscard]] std::string_view name(CheckCommand::Format format);

/// The options given that mean nothing without a GPU, "--graph, --share-gpu"; "" when none is.
[[nodiscard]] std::string gpu_options_given(const RunConfig& config);

/// The configuration as canonical TOML: parses back to an equal RunConfig; the run file keeps it.
/// Models that are not presets are written out, so no other file is needed.
[[nodiscard]] std::string to_toml(const RunConfig& config);
/// The experiment-file form of a configuration. Throws base::UsageError with line and key.
[[nodiscard]] RunConfig from_toml(std::string_view toml, std::string_view origin);

/// The same, with a table of workloads of the caller's.
[[nodiscard]] RunConfig from_toml(std::string_view toml, std::string_view origin,
                                  std::span<const workloads::Workload> known);

/// The settings of a run that --resume continues: those it was measured with, from its echo `toml`,
/// and from `asked` what belongs to one launch, the file, the budget, the allowed checks and what
/// is printed. Throws base::UsageError when `toml` cannot be read.
[[nodiscard]] RunConfig resumed(const RunConfig& asked, std::string_view toml);

}  // namespace isoscale::config
