// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/outline.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/executor_and_sampler_records.hpp"
#include "results/records/preflight_result.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// The data of one launch in memory. The code that measures fills it, the writer stores it, the
/// reader returns it, and the analysis uses nothing else of the launch.
namespace isoscale::results {

inline constexpr int schema_major = 1;
inline constexpr int schema_minor = 9;

enum class PointStatus : std::uint8_t { ok, failed, skipped };
[[nodiscard]] std::string_view name(PointStatus status);

/// One row of a micro-benchmark: a measured combination of its options. A play is one timed
/// repetition of `calls` calls; the time of a call is that of the play on the slowest rank / calls.
struct RowData {
  /// Texts by key that say what the row is about: op, dtype, reduction, in_place ("yes", "no"),
  /// kind, cache, class, ... An empty text is stored as an absent one.
  std::map<std::string, std::string> text{};
  /// The numbers of the measurement by key: bytes, count, m, n, k, batch, flop, src, dst, root, ...
  /// NaN = absent.
  std::map<std::string, double> number{};
  std::vector<int> ranks{};  ///< ranks of the point that took part; empty = all
  std::int64_t calls = 1;    ///< consecutive calls in one play
  /// Indexed by [play][i]: seconds of a whole play on ranks[i] (on rank i when `ranks` is empty).
  std::vector<std::vector<double>> times{};
  std::vector<double> call_times{};      ///< seconds of single calls in traced plays, slowest rank
  PointStatus status = PointStatus::ok;  ///< status of this row
  std::string reason{};                  ///< why the row is not ok
  /// The number of elements with a wrong value; absent: not checked.
  std::optional<std::int64_t> wrong{};

  bool operator==(const RowData&) const = default;
};

/// These functions return a text or a number of a row by its key; "" or absent without this key.
[[nodiscard]] std::string text_of(const RowData& row, const std::string& key);
[[nodiscard]] std::optional<double> number_of(const RowData& row, const std::string& key);

/// The op times of one traced step on each rank of the point, summed by kind of op, in seconds.
/// They are kept for each traced step except the first of a block, while spans are kept for a few
/// steps only. Of more than 512 such steps, at most 512, evenly spread, keep them.
struct OpSums {
  std::uint32_t step = 0;  ///< number among all steps of the point
  std::vector<double> gemm{}, other_compute{}, copies{}, communication{};  ///< by rank of the point
};

/// The time of each op of a rank's step, as the median over repetitions in which all ranks play the
/// step at once without its communication.
struct SoloTimes {
  int rank = 0;                          ///< rank of the point
  std::vector<units::Nanoseconds> op{};  ///< by op of the rank's step; 0 for communication
};

/// The interim analyses, at each of which the measuring loop may stop if it has enough samples; the
/// confidence interval is corrected for their number.
struct Looks {
  int planned = 1;    ///< most analyses that the loop would have made
  int made = 1;       ///< number of analyses until the loop stopped
  double growth = 1;  ///< ratio of the sample counts of consecutive analyses

  bool operator==(const Looks&) const = default;
};

/// The results of --soak: one step is replayed from saved state, and every bit is compared.
struct Soak {
  std::uint64_t replays = 0;
  double seconds = 0;
  /// One text for each of the first replays that differed: the first rank that differed, and the
  /// data in which it did.
  std::vector<std::string> differing{};
};

/// One measured configuration.
struct PointData {
  int index = 0;
  std::string workload, model, dtype;
  mesh::Shape mesh;
  int ranks = 0, nodes = 0;
  std::string scaling, placement;
  std::map<std::string, std::string> options;  ///< values of all options, as text
  /// The sizes of the model at this mesh, as text by name (weak scaling changes them).
  std::map<std::string, std::string> model_shape;
  std::uint64_t seed = 0;
  std::vector<std::string> labels;  ///< "oversubscribed", "shared-gpu", "injected", ...
  PointStatus status = PointStatus::ok;
  std::string reason{};          ///< why not ok; "" when ok
  std::optional<bool> verified;  ///< absent: not checked
  std::string verification;      ///< what was compared, and the error found

  std::string throughput_unit;  ///< "tokens/s"
  /// The work of one step on all ranks, in the unit that `throughput_unit` has per second.
  double work_per_step = 0;
  std::vector<double> flop_of_rank;    ///< FLOP of one step, per rank
  std::vector<double> memory_of_rank;  ///< bytes per rank, including the executor's work space
  /// The part of memory_of_rank in pinned and pageable host buffers; empty if it is not known.
  std::vector<double> host_memory_of_rank{};
  double communicator_creation = 0;  ///< seconds, slowest rank
  /// The most microbatches whose activations are kept at once, for each rank.
  std::vector<int> peak_live_microbatches;
  std::vector<int> world_rank;  ///< rank in the launch of each rank of the point
  bool folded = false;          ///< the executor folded all streams into one
  std::string folded_reason;
  std::string graph = "off";             ///< "on": steps were played as one CUDA graph
  std::vector<GemmChoice> gemm_choices;  ///< empty if the executor chooses no algorithms
  std::vector<CommunicatorTime> communicators;

  /// step_times[step][rank] in seconds, for every step from the start of warm-up. The first
  /// `warm_up_steps`, those that recorded spans (`traced`) and the first of each block (`dropped`)
  /// do not count for the step time of the point.
  std::vector<std::vector<double>> step_times{};
  std::int64_t warm_up_steps = 0;
  std::vector<std::uint8_t> traced{}, dropped{};
  std::string stopped_because;  ///< "precision" or "max-time"
  std::string warm_up_rule{};   ///< the rule that ended warm-up
  Looks looks{};
  std::vector<std::string> injections{};  ///< injected faults, as given to --inject

  program::OutlineSet outline;               ///< the ops of the step on each rank
  std::vector<timeline::Timeline> traces{};  ///< spans of the traced steps that were kept
  /// For each rank of the point: its clock's offset from that of rank 0 and a bound on the offset's
  /// error, in seconds, and its drift in seconds per second. They have been applied to the traces.
  std::vector<double> clock_offset, clock_error;
  std::vector<double> clock_drift{};
  std::vector<SoloTimes> solo_times{};  ///< for the traced ranks
  std::vector<OpSums> op_sums{};        ///< for traced steps, see OpSums
  std::vector<DeviceSeries> device_series{};
  /// Seconds from the start of the point's first step to the end of its last; absent: not known.
  std::optional<double> measured_seconds{};
  Soak soak{};                  ///< results of --soak; replays = 0: not requested
  std::vector<RowData> rows{};  ///< rows of a micro-benchmark, in the order measured
  std::string started, ended;   ///< UTC, ISO 8601
};

/// Facts of one rank of the launch, as text and numbers; unknown facts are absent.
struct RankFacts {
  int rank = 0;
  std::string host{};
  int node = 0;
  std::map<std::string, std::string> text{};  ///< cpu_model, os, device, cpu_quota, ...
  std::map<std::string, double> number{};     ///< cores, memory_total, gpu_sm_clock, ...

  bool operator==(const RankFacts&) const = default;
};
/// Returns a fact of a rank as text; "" if it is not known.
[[nodiscard]] std::string text_of(const RankFacts& facts, const std::string& key);

/// The facts that were checked before anything was measured, and the results of the checks.
struct PreflightData {
  std::vector<CheckResult> results{};
  std::string facts{};  ///< JSON of preflight::JobFacts

  bool operator==(const PreflightData&) const = default;
};

struct RunData {
  std::string id;                  ///< unique, random
  std::string created{}, ended{};  ///< UTC, ISO 8601; ended "" while running or when killed
  std::string isoscale_version, git_hash, compiler, build_type;
  std::string device, device_detail, mpi_library;
  std::string command_line, config_toml;
  int ranks = 0, nodes = 0;
  int planned = 0;  ///< number of points to measure; 0 = not known (schema before 1.9)
  bool complete = false;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<RankFacts> rank_facts{};
  std::optional<PreflightData> preflight{};  ///< absent before schema version 1.4
  std::vector<PointData> points{};
  /// Fits to the rows of the points; absent if nothing was fitted, or if the run has not ended.
  std::optional<CalibrationData> calibration{};
};

/// Throws base::Error when a point is inconsistent, for example if a list per rank or per step has
/// the wrong length, if traces or rows have ranks that do not exist, or if ops wait for later ones.
/// A valid point can be analysed without further checks.
void validate(const PointData& point);
/// Throws base::Error unless the sizes of a curve's samples are ascending and not negative, and
/// their fitted times are positive.
void validate(const CalibrationCurve& curve);

}  // namespace isoscale::results
