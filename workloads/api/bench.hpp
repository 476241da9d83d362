// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/buffer.hpp"
#include "program/program.hpp"
#include "program/session_options.hpp"
#include "units/quantity.hpp"

namespace isoscale::workloads {

// A micro-benchmark consists of programs with a step for each thing that is timed, and of rows that
// say what the time of each step means.

/// One measured tuple, without its times: what was measured, by name ("op" = "all_reduce"), and its
/// sizes and places ("bytes" = 1024).
struct RowSpec {
  std::map<std::string, std::string> text{};
  std::map<std::string, double> number{};
  std::vector<int> ranks{};  ///< of the point, that take part; empty = all
  /// The row is about what happens on this stream alone, while others are busy too: its times are
  /// those of traced plays, from the stream's first start to its last end.
  std::optional<program::StreamId> stream{};
  /// Two ranks that do not answer each other, for which the row is not played: Request says which.
  std::optional<std::pair<int, int>> silent{};
};

/// The moment at which a case's restore section is played: before its plays begin, or before each
/// of them because a play spoils its own input.
enum class Restore : std::uint8_t { never, once, every_play };

/// Says whether the spans of a traced pass, dealt out in order, are those of its calls.
enum class CallsAreSpans : std::uint8_t { no, yes };

/// Says whether a pass may follow another one within a play: not when it spoils its own input, or
/// when the time of a play is meant to be that of one pass.
enum class Repeat : std::uint8_t { allowed, never };

/// Says whether the time to launch work on a GPU belongs to what is measured: it does where a whole
/// model is played as a user would, not where single calls are.
enum class LaunchCost : std::uint8_t { excluded, included };

/// The demands of a device on the plays of a micro-benchmark, so that neither the grain of its
/// clock nor the launches by the host decide about times. The defaults are those of the host, which
/// asks for nothing.
struct PlayBounds {
  /// A play is long enough with either of these; a Case may make it longer.
  units::Seconds least_time{0};
  std::uint64_t least_calls = 0;
  /// Calls that may be shorter than their launch by the host: there are no more of them in a play
  /// than are launched before it begins.
  units::Seconds short_call{0};
  std::uint64_t most_short_calls = UINT64_MAX;
  /// Data that shall not be found in a cache lies in at least so much memory, used in turn.
  units::Bytes cold{0};

  bool operator==(const PlayBounds&) const = default;
};

/// Inputs of which the results are known. After all cases have been timed, `section` is played and
/// then the case's own section, once.
struct Check {
  program::Section section{};             ///< makes the inputs, and spoils earlier results
  std::vector<program::Gemm> products{};  ///< whose results are compared; see exact_data.hpp
};

/// One step of a bench's programs, timed by itself; one time on each rank, for one row or several.
struct Case {
  program::Section section{};
  Restore when = Restore::never;
  program::Section restore{};  ///< makes memory ready, is not timed
  std::uint64_t calls = 1;     ///< calls, one after the other, that one pass makes
  /// Passes that make a play long enough on the host, and at most as many as are worth their time.
  std::uint64_t most_times = 1;
  /// True if the executor is asked what its library expects of the section: number "estimate" of
  /// its rows, seconds a call.
  bool wants_estimate = false;
  std::size_t row_begin = 0, row_end = 0;  ///< into Bench::rows
  CallsAreSpans calls_are_spans = CallsAreSpans::yes;
  Repeat repeat = Repeat::allowed;
  LaunchCost launch_cost = LaunchCost::excluded;
  /// Absent: what the last timed play has left is compared, where BenchHooks::expect says with
  /// what.
  std::optional<Check> check{};
};

/// The programs, cases and rows of one session, on communicators of its own.
struct Bench {
  program::ProgramSet set{};
  program::SessionOptions session{};
  std::vector<Case> cases{};
  std::vector<RowSpec> rows{};
};

/// Memory of one rank that must hold known values when a case has been played. Element i of `slice`
/// is the reduction over `sources`, or the one source, of element first + i of their patterns; see
/// exact_data.hpp.
struct Expectation {
  program::Slice slice{};
  std::vector<int> sources{};  ///< ranks of the point
  program::Reduction reduction = program::Reduction::sum;
  std::uint64_t first = 0;
};

/// The programs of a mesh whose ranks all play the same.
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

/// The functions that build a micro-benchmark: pure, as those of Workload.
struct BenchHooks {
  /// Sessions that it takes, one after the other.
  int (*batches)(const Request& request) = nullptr;
  /// Throws base::UsageError when options exclude each other or the mesh.
  Bench (*build)(const Request& request, int batch) = nullptr;
  /// The values that `rank` must hold after case number `index` of the batch has been played, its
  /// check's products left out; one case at a time, for there are as many as calls times ranks.
  /// Null: nothing can be said.
  std::vector<Expectation> (*expect)(const Request& request, int batch, std::size_t index,
                                     int rank) = nullptr;
  /// Types that buffers have, for the executor must know them. Null: those of the precision.
  std::vector<program::DType> (*types)(const Request& request) = nullptr;
  /// The request of a point on a machine: options that are derived from it are filled in. Null:
  /// none are.
  Request (*on_machine)(const Request& request, const Machine& machine) = nullptr;
  std::string_view only_on{};  ///< the one device it is about; "" = any
  /// True if the model matters to it.
  bool (*uses_model)(const Request& request) = nullptr;
  /// The time that ranks wait for a message before the pair has failed; the rest is still measured.
  /// Null: for ever.
  units::Seconds (*timeout)(const Request& request) = nullptr;
  /// The least median bandwidth of each pair, in each direction; absent: anything. Null:
  /// nothing is asked for.
  std::optional<units::BytesPerSecond> (*expected_bandwidth)(const Request& request) = nullptr;
};

/// The type that a precision stores its data in; fp8 stores e4m3.
[[nodiscard]] program::DType stored_type(Precision precision);
/// The precision that an executor must know to have `type`; absent for integers, which all have.
[[nodiscard]] std::optional<Precision> precision_of(program::DType type);
/// The types of a list such as "f32,i32"; "" = what the request's precision stores.
[[nodiscard]] std::vector<program::DType> element_types(const Request& request,
                                                        std::string_view list);

}  // namespace isoscale::workloads
