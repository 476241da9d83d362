// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"
#include "mesh/request.hpp"
#include "program/buffer.hpp"
#include "program/program.hpp"
#include "program/session_options.hpp"
#include "units/quantity.hpp"
#include "workloads/api/model.hpp"
#include "workloads/api/options.hpp"

namespace isoscale::workloads {
// A micro-benchmark consists of programs with a step for each timed case, and of rows that say what
// the time of each step means.

/// One result row without its times: what was measured, by name ("op" = "all_reduce"), and its
/// sizes and places ("bytes" = 1024).
struct RowSpec {
  std::map<std::string, std::string> text{};
  std::map<std::string, double> number{};
  std::vector<int> ranks{};  ///< of the point that take part; empty = all
  /// The row is about this stream alone, while others are busy too. Its times are those of traced
  /// plays, from the stream's first start to its last end.
  std::optional<program::StreamId> stream{};
  /// Two ranks that do not answer each other (Request::silent_pairs); the row is not played for
  /// them.
  std::optional<std::pair<int, int>> silent{};
};

/// Says when a case's restore section is played: before all of its plays, or before each of them
/// because a play overwrites its own input.
enum class Restore : std::uint8_t { never, once, every_play };

/// Says whether the spans of a traced pass, divided evenly in order, are those of its calls.
enum class CallsAreSpans : std::uint8_t { no, yes };

/// Says whether a play may have several passes. It may not if a pass overwrites its own input, or
/// if the time of a play must be that of one pass.
enum class Repeat : std::uint8_t { allowed, never };

/// Says whether the time to launch work on a GPU belongs to the result. It does if a whole model is
/// played as a user would, but not for single calls.
enum class LaunchCost : std::uint8_t { excluded, included };

/// The demands of a device on the plays of a micro-benchmark. They keep the resolution of its clock
/// and the launches by the host from deciding the times. The defaults are those of the host, which
/// has no demands.
struct PlayBounds {
  /// A play is long enough if it reaches either of these; a Case may make it longer.
  units::Seconds least_time{0};
  std::uint64_t least_calls = 0;
  /// Shorter calls may take less time than their launch by the host. A play has no more of them
  /// than can be launched before it begins.
  units::Seconds short_call{0};
  std::uint64_t most_short_calls = UINT64_MAX;
  /// Data that must not be in a cache is spread over at least this much memory, used in turn.
  units::Bytes cold{0};

  bool operator==(const PlayBounds&) const = default;
};

/// Inputs whose results are known. After all cases have been timed, `section` is played once, and
/// then the case's own section.
struct Check {
  program::Section section{};             ///< makes the inputs, and overwrites earlier results
  std::vector<program::Gemm> products{};  ///< their results are compared; see exact_data.hpp
};

/// One step of a bench's programs that is timed by itself. It gives one time on each rank, for one
/// row or several.
struct Case {
  program::Section section{};
  Restore when = Restore::never;
  program::Section restore{};  ///< prepares memory; it is not timed
  std::uint64_t calls = 1;     ///< calls, one after the other, that one pass makes
  /// The number of passes that make a play long enough on the host; at most as many as are worth
  /// their time.
  std::uint64_t most_times = 1;
  /// True if the executor is asked for its library's estimate of the section: number "estimate" of
  /// its rows, in seconds per call.
  bool wants_estimate = false;
  std::size_t row_begin = 0, row_end = 0;  ///< into Bench::rows
  CallsAreSpans calls_are_spans = CallsAreSpans::yes;
  Repeat repeat = Repeat::allowed;
  LaunchCost launch_cost = LaunchCost::excluded;
  /// If absent, the results of the last timed play are compared, if BenchHooks::expect gives
  /// values.
  std::optional<Check> check{};
};

/// The programs, cases and rows of one session, which has communicators of its own.
struct Bench {
  program::ProgramSet set{};
  program::SessionOptions session{};
  std::vector<Case> cases{};
  std::vector<RowSpec> rows{};
};

/// Memory of one rank that must hold known values after a case was played. Element i of `slice` is
/// the reduction over `sources` of element first + i of their patterns (with one source, that
/// element itself); see exact_data.hpp.
struct Expectation {
  program::Slice slice{};
  std::vector<int> sources{};  ///< ranks of the point
  program::Reduction reduction = program::Reduction::sum;
  std::uint64_t first = 0;
};

/// Returns the programs of a mesh whose ranks all play the same one.
[[nodiscard]] inline program::ProgramSet alike(const mesh::Shape& mesh,
                                               program::RankProgram program) {
  program::ProgramSet set{.mesh = mesh, .programs = {}, .program_of_rank = {}};
  set.programs.push_back(std::move(program));
  set.program_of_rank.assign(static_cast<std::size_t>(mesh.size()), 0);
  return set;
}

enum class Precision : std::uint8_t;
struct Request;

/// The facts of the machine that a bench may depend on, as a plan knows them.
struct Machine {
  std::string_view device;    ///< "host", "cuda"
  int numa_nodes = 1;         ///< of a node, the least
  units::Bytes gpu_cache{0};  ///< the L2 of the GPU that has most; 0 = unknown
};
[[nodiscard]] PlayBounds play_bounds(const Machine& machine);

/// The functions that build a micro-benchmark; they are pure, like those of Workload.
struct BenchHooks {
  /// Returns the number of sessions that the bench takes, one after the other.
  int (*batches)(const Request& request) = nullptr;
  /// Builds one session. Throws base::UsageError if options exclude each other or the mesh.
  Bench (*build)(const Request& request, int batch) = nullptr;
  /// Returns the values that `rank` must hold after case number `index` of the batch was played,
  /// without the products of its check. It covers one case at a time, since there are as many
  /// values as calls times ranks. Null: nothing is known.
  std::vector<Expectation> (*expect)(const Request& request, int batch, std::size_t index,
                                     int rank) = nullptr;
  /// Returns the types of buffers, which the executor must support. Null: those of the precision.
  std::vector<program::DType> (*types)(const Request& request) = nullptr;
  /// Returns the request of a point on a machine, with the options that are derived from the
  /// machine. Null: there are none.
  Request (*on_machine)(const Request& request, const Machine& machine) = nullptr;
  std::string_view only_on{};  ///< the only device it runs on; "" = any
  /// True if the bench depends on the model.
  bool (*uses_model)(const Request& request) = nullptr;
  /// Returns how long ranks wait for a message before the pair has failed; the other pairs are
  /// still measured. Null: for ever.
  units::Seconds (*timeout)(const Request& request) = nullptr;
  /// Returns the least median bandwidth that each pair must reach in each direction; absent: any.
  /// Null: any.
  std::optional<units::BytesPerSecond> (*expected_bandwidth)(const Request& request) = nullptr;
};

/// Returns the type that a precision stores its data in; fp8 stores e4m3.
[[nodiscard]] program::DType stored_type(Precision precision);
/// Returns the precision that an executor must support to have `type`; absent for integers, which
/// all support.
[[nodiscard]] std::optional<Precision> precision_of(program::DType type);
/// Returns the types of a list such as "f32,i32"; "" means the type that the request's precision
/// stores.
[[nodiscard]] std::vector<program::DType> element_types(const Request& request,
                                                        std::string_view list);

/// The type that a run computes in; tf32 is stored as f32.
enum class Precision : std::uint8_t { f64, f32, tf32, f16, bf16, fp8 };
[[nodiscard]] std::string_view name(Precision precision);
/// Reads a precision. Throws base::UsageError with the names that exist.
[[nodiscard]] Precision parse_precision(std::string_view text);

enum class Scaling : std::uint8_t { strong, weak };
[[nodiscard]] std::string_view name(Scaling scaling);

/// Says whether a program keeps its results until the end of a step, for verification to read, or
/// frees them as soon as they are used.
enum class Keep : std::uint8_t { nothing, observables };

/// The complete input from which a program is built. `options` are complete: once a point has been
/// planned, batch, microbatch and microbatches are all set.
struct Request {
  Model model{};
  mesh::Shape mesh{};
  Precision precision = Precision::f32;
  Options options{};
  std::uint64_t seed = 1;
  Keep keep = Keep::nothing;
  /// The factor by which weak scaling has grown the work per token over the base mesh.
  double growth = 1;
  /// The node of each rank, for micro-benchmarks, as far as known; empty = all ranks on one node.
  std::vector<int> node_of_rank{};
  /// Pairs of ranks (the lower first) that did not answer each other in a micro-benchmark and are
  /// skipped.
  std::vector<std::pair<int, int>> silent_pairs{};
  /// The bounds that the device sets for a micro-benchmark's plays.
  PlayBounds bounds{};
  /// The measured speed of each rank of the mesh, in any common unit, for workloads that partition
  /// work by speed; empty = all equal.
  std::vector<double> speed_of_rank{};

  bool operator==(const Request&) const = default;
};

/// Says what a point of a workload plays and reports: steps with equal work, the cases of a
/// micro-benchmark with a row for each, or requests that arrive while it plays.
enum class Kind : std::uint8_t { steps, rows, requests };

/// Says whether a workload has the sizes of Request::model. A micro-benchmark says so by its hooks.
enum class ModelUse : std::uint8_t { none, shapes_all };

/// One row of the registry: a workload consists of these functions, and has no state.
struct Workload {
  std::string_view name;
  std::string_view description;
  std::span<const OptionSpec> options;
  mesh::AxisSet axes;  ///< the axes it may use; the others stay 1
  /// Returns the mesh of `ranks` ranks that the workload takes if the user names none.
  mesh::Request (*natural_mesh)(int ranks);
  /// Returns the numbers that the mesh must divide.
  std::vector<mesh::Constraint> (*limits)(const Request& base, Scaling scaling);
  /// Returns the request of a point at `mesh`, from the request at the base mesh (all axes 1). It
  /// fills in batch, microbatch and microbatches; under weak scaling the batch grows with dp, heads
  /// and FFN width with tp, and layers with pp. Throws base::UsageError with the numbers if the
  /// batch does not divide.
  Request (*scale)(const Request& base, const mesh::Shape& mesh, Scaling scaling);
  /// Builds the programs of all ranks. Throws base::UsageError if options exclude each other or the
  /// mesh.
  program::ProgramSet (*build)(const Request& request);
  /// Returns a small version for verification: it has the same mesh, code, schedule and options,
  /// but sizes and bucket thresholds are scaled down together, and its programs keep their results
  /// (observables).
  Request (*twin)(const Request& request);
  /// Returns the request with which a single rank computes in f64 the same outputs, gradients and
  /// weights as the whole mesh of `twin`.
  Request (*reference)(const Request& twin);
  /// Returns the work per step over all ranks, in the unit of `throughput_unit`: tokens, times the
  /// growth of the work per token under weak scaling.
  double (*work_per_step)(const Request& request);
  std::string_view throughput_unit;
  Kind kind = Kind::steps;
  /// The hooks of a workload with rows instead of steps. Its work_per_step is null, and so are
  /// build, twin and reference unless its twin verifies it. A micro-benchmark has no limits.
  BenchHooks bench{};
  /// The use of the model by a workload with steps.
  ModelUse model_use = ModelUse::shapes_all;

  [[nodiscard]] bool is_bench() const { return kind != Kind::steps; }
};

[[nodiscard]] std::span<const Workload> registry();
/// Returns the workload of this name. Throws base::UsageError with the nearest name.
[[nodiscard]] const Workload& find_workload(std::string_view name);

}  // namespace isoscale::workloads
