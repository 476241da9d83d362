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
#include "mesh/mesh_request.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"
#include "workloads/api/options.hpp"

namespace isoscale::workloads {

/// The sizes of a transformer. Training and inference workloads run GEMMs of these sizes.
struct Model {
  std::string name;
  std::string source;      ///< where the numbers were published
  int hidden = 0;          ///< h in formulas
  int ffn = 0;             ///< width of the MLP between its two projections
  int heads = 0;           ///< query heads; a in formulas
  int kv_heads = 0;        ///< key and value heads; equals `heads` without grouped queries
  int head_size = 0;       ///< d in formulas
  bool gated_mlp = false;  ///< the MLP has two up-projections (gate and up)
  int layers = 0;
  int sequence = 0;                 ///< tokens per sample; s in formulas
  int vocabulary = 0;               ///< V in formulas
  bool tied_embedding = true;       ///< output projection and embedding share weights
  bool learned_positions = false;   ///< a position table of sequence x hidden
  double published_parameters = 0;  ///< number stated by the source; 0 = none
  /// Samples of a training step; 0 = none published. A batch that was published in tokens is
  /// converted to samples, rounded to the nearest multiple of 256. Predictions from a data sheet
  /// use this batch by default; runs have another default.
  int batch = 0;

  bool operator==(const Model&) const = default;
};

/// Returns the names of the built-in models, from the fewest parameters to the most.
[[nodiscard]] std::vector<std::string> model_names();
/// Returns a built-in model by its name, or the model in a TOML file by its path, which ends in
/// .toml. Throws base::UsageError for an unknown name, and suggests a similar one if there is one.
/// Also throws it for a file that cannot be read or is not valid TOML. For other files, one error
/// lists all missing and unknown keys and all invalid values. Only if there are none of these, it
/// lists values that contradict each other, widths that are too large, and a name that cannot be
/// used.
[[nodiscard]] Model load_model(std::string_view name_or_path);
/// Parses one model. `origin`, the path of the file, is named in error messages. If the text names
/// no model, the file's name becomes the model's name, without .toml and without characters that a
/// model's name may not have. Throws base::UsageError, as load_model() does for a file.
[[nodiscard]] Model parse_model(std::string_view toml, std::string_view origin);

/// The description of one key of a model file, as in `isoscale list keys model`.
struct ModelKey {
  std::string_view key, meaning;
  std::string_view fallback;  ///< value if the file has none; "" = the key is mandatory
};
[[nodiscard]] std::vector<ModelKey> model_keys();
/// Returns the sizes that programs depend on, with their keys in model files and in run files.
[[nodiscard]] std::vector<std::pair<std::string, int Model::*>> model_sizes();

/// Returns the number of weights of the published model, with its embeddings, positions, norms and
/// biases. A model with a plain MLP is counted like GPT (biases; two vectors per norm), and one
/// with a gated MLP like Llama (no biases; one vector per norm).
[[nodiscard]] double parameter_count(const Model& model);

// A micro-benchmark has cases and result rows. A case is a step of the ranks' programs that is
// timed by itself; a row says what the time of a case measures. A play is one timed execution of a
// case, which runs its step once or several times in a row (passes).

/// A result row without its times. `text` has the values that are words ("op" = "all_reduce"), and
/// `number` those that are numbers ("bytes" = 1024).
struct RowSpec {
  std::map<std::string, std::string> text{};
  std::map<std::string, double> number{};
  std::vector<int> ranks{};  ///< ranks that take part; empty = all
  /// If set, the row has the times of this stream alone, although other streams are busy, too. They
  /// are taken from traced plays: from the start of the stream's first op to the end of its last.
  std::optional<program::StreamId> stream{};
  /// If set, these two ranks of the row did not answer each other (Request::silent_pairs), so the
  /// row is not measured.
  std::optional<std::pair<int, int>> silent{};
};

/// A case may have a restore section, which prepares the memory that the case reads. Restore says
/// when this section is run. never: the case has no such section. once: before the first play of
/// the case, and before the play whose results are compared. every_play: before each play, because
/// a play changes what it starts from, such as its own input.
enum class Restore : std::uint8_t { never, once, every_play };

/// Says whether the spans (timed ops) of a traced pass can be assigned to its calls of a library,
/// such as NCCL or cuBLASLt. yes: the pass has the same number of spans for each call, in the order
/// of the calls.
enum class CallsAreSpans : std::uint8_t { no, yes };

/// Says whether a timed play of a case may run the case's step several times (passes). It may not
/// if a pass changes data that the next pass starts from, or if each pass must be timed by itself.
enum class Repeat : std::uint8_t { allowed, never };

/// Says whether the time to launch work on a GPU is part of the result. It is part of the result if
/// a whole model is run, as a user would run it, but not if single calls are measured.
enum class LaunchCost : std::uint8_t { excluded, included };

/// The limits on a micro-benchmark's plays (timed executions of a case) that keep the resolution of
/// a device's clock and launches by the host from dominating the times. The defaults, which limit
/// nothing, are those of the host device.
struct PlayBounds {
  /// A play is long enough if it reaches one of these two; a Case may demand more.
  units::Seconds least_time{0};
  std::uint64_t least_calls = 0;
  /// If a call is shorter than `short_call`, the host may need more time to launch it than the call
  /// takes. Up to `most_short_calls` calls can be launched before a play begins. So a play has no
  /// more such calls than that, unless it is a single pass or has Repeat::never.
  units::Seconds short_call{0};
  std::uint64_t most_short_calls = UINT64_MAX;
  /// Calls whose data must not be in a cache use different parts of memory in turn. Together these
  /// parts should have at least this size.
  units::Bytes cold{0};

  bool operator==(const PlayBounds&) const = default;
};

/// A check with inputs for which the results are known exactly. After all cases have been timed,
/// the check runs `section` once, and then the section of its case.
struct Check {
  program::Section section{};             ///< makes the inputs; overwrites earlier results
  std::vector<program::Gemm> products{};  ///< multiplications to compare; see exact_data.hpp
};

/// One step of a benchmark's programs that is timed by itself. It has one time on each rank, which
/// belongs to one or several rows.
struct Case {
  program::Section section{};
  Restore when = Restore::never;
  program::Section restore{};  ///< prepares memory; is not timed
  std::uint64_t calls = 1;     ///< number of calls in one pass, one after another
  /// The usual number of passes in one play. A play has fewer if these would take too long and,
  /// where repeats are allowed, more if the device needs a longer play (PlayBounds).
  std::uint64_t most_times = 1;
  /// If true, the executor asks its communication library (NCCL) to estimate how long the section's
  /// communication takes. The case's rows report this as the number "estimate", in seconds per
  /// call, unless the library gives no estimate.
  bool wants_estimate = false;
  std::size_t row_begin = 0, row_end = 0;  ///< the case's range in Bench::rows
  CallsAreSpans calls_are_spans = CallsAreSpans::yes;
  Repeat repeat = Repeat::allowed;
  LaunchCost launch_cost = LaunchCost::excluded;
  /// Checks the results after timing. If absent, the results of the case's last play are compared
  /// with the values of BenchHooks::expect, if it gives any.
  std::optional<Check> check{};
};

/// The programs, cases and rows of one session. Each session has communicators of its own.
struct Bench {
  program::ProgramSet set;  // no {}: with it, every including source compiles the destructor
  program::SessionOptions session{};
  std::vector<Case> cases{};
  std::vector<RowSpec> rows{};
};

/// Memory of one rank that must hold known values after a case was run. The inputs of each rank are
/// a known pattern (exact_data.hpp). Element i of `slice` must be the reduction, over the ranks in
/// `sources`, of element first + i of their patterns; with a single source, it must be that
/// source's element itself.
struct Expectation {
  program::Slice slice{};
  std::vector<int> sources{};  ///< ranks of the mesh
  program::Reduction reduction = program::Reduction::sum;
  std::uint64_t first = 0;
};

/// Returns the programs of a mesh on which all ranks with the same key share a program.
/// key_of(rank) returns a rank's key, and write(key) its program.
template <class KeyOf, class Write>
[[nodiscard]] program::ProgramSet shared_programs(const mesh::Shape& mesh, const KeyOf& key_of,
                                                  const Write& write) {
  program::ProgramSet set{.mesh = mesh, .programs = {}, .program_of_rank = {}};
  std::map<std::decay_t<decltype(key_of(0))>, std::uint32_t> known;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const auto [entry, is_new] =
        known.try_emplace(key_of(rank), static_cast<std::uint32_t>(set.programs.size()));
    if (is_new) set.programs.push_back(write(entry->first));
    set.program_of_rank.push_back(entry->second);
  }
  return set;
}

using program::Precision;
struct Request;

/// Facts about the machine that a benchmark may depend on. They are known when a run is planned.
struct Machine {
  std::string_view device;                  ///< "host", "cuda"
  int numa_nodes = 1;                       ///< smallest number of NUMA nodes on any host
  std::optional<units::Bytes> gpu_cache{};  ///< largest L2 of any GPU; absent: unknown
};
[[nodiscard]] inline PlayBounds play_bounds(const Machine& machine) {
  if (machine.device == "host") return {};
  // An unknown L2 is taken to be as large as the largest of any GPU so far (B200: 126 MB).
  constexpr units::Bytes largest_cache{std::uint64_t{128} << 20U};
  const units::Bytes cache = machine.gpu_cache.value_or(largest_cache);
  return {// CUDA events have a resolution of 0.5 us, which is 0.025% of this time.
          .least_time = units::Seconds{2e-3},
          .least_calls = 20,
          // The host takes at most about this long to launch one call of NCCL or cuBLASLt.
          .short_call = units::Seconds{10e-6},
          .most_short_calls = 64,
          .cold = units::Bytes{2 * cache.value()}};
}

/// The functions that make up a micro-benchmark. They are pure, like the members of Workload.
struct BenchHooks {
  /// Returns the number of sessions ("batches"), which run one after another; 1 unless the workload
  /// sets it.
  int (*batches)(const Request& request) = [](const Request&) { return 1; };
  /// Returns the programs, cases and rows of session number `batch`. Throws base::UsageError for
  /// options that exclude each other or do not fit the mesh.
  Bench (*build)(const Request& request, int batch) = nullptr;
  /// Returns the values that `rank` must hold after case number `index` of the batch was run.
  /// Results of multiplications are not among them; Check::products lists these. The function is
  /// called for one case at a time, since all cases together have too many values. Null: no values
  /// are known.
  std::vector<Expectation> (*expect)(const Request& request, int batch, std::size_t index,
                                     int rank) = nullptr;
  /// Returns the element types of all buffers, which the executor must support. Null: the types
  /// follow from the precision.
  std::vector<program::DType> (*types)(const Request& request) = nullptr;
  /// Returns `request` with the options filled in that depend on the machine. Null: no option
  /// depends on the machine.
  Request (*on_machine)(const Request& request, const Machine& machine) = nullptr;
  std::string_view only_on{};  ///< the only device on which it runs; "" = any
  /// Returns true if the benchmark depends on the model. Null: it never does.
  bool (*uses_model)(const Request& request) = nullptr;
  /// Returns how long a rank waits for a message before its pair of ranks counts as failed. The
  /// other pairs are still measured. Null: ranks wait for ever.
  units::Seconds (*timeout)(const Request& request) = nullptr;
  /// Returns the least median bandwidth that each pair of ranks must reach in each direction;
  /// absent if the request demands none. Null: no request demands one.
  std::optional<units::BytesPerSecond> (*expected_bandwidth)(const Request& request) = nullptr;
};

enum class Scaling : std::uint8_t { strong, weak };
[[nodiscard]] inline std::string_view name(Scaling scaling) {
  return scaling == Scaling::strong ? "strong" : "weak";
}

/// Says which results a program keeps. observables: outputs, gradients and the like are kept until
/// the end of a step, so that verification can read them. nothing: results are freed as soon as
/// possible.
enum class Keep : std::uint8_t { nothing, observables };

/// The training software whose memory is predicted (docs/predicting.md). none: the program itself,
/// with the memory that a run of it needs. The others are only for predictions, and count the
/// memory of real training software where it differs. separate_attention: attention has several
/// kernels, which store its scores. fused_attention: attention has one kernel, which stores no
/// scores.
enum class Trainer : std::uint8_t { none, separate_attention, fused_attention };

/// Everything from which a program is built. For a workload that trains a transformer, `options`
/// has values for batch, microbatch and microbatches once a run has been planned.
struct Request {
  Model model{};
  mesh::Shape mesh{};
  Precision precision = Precision::f32;
  Options options{};
  std::uint64_t seed = 1;
  Keep keep = Keep::nothing;
  /// The work per token, relative to the work per token on the base mesh (all axes 1). It is above
  /// 1 where weak scaling makes the model larger. The workload `tiles`, which has no tokens, sets
  /// it to the number of tiles of the image under weak scaling.
  double growth = 1;
  /// For micro-benchmarks, the node of each rank; empty if unknown, which is treated as one node.
  std::vector<int> node_of_rank{};
  /// Pairs of ranks (the lower first) that did not answer each other in a micro-benchmark and are
  /// skipped.
  std::vector<std::pair<int, int>> silent_pairs{};
  /// For micro-benchmarks, the limits on plays that the device needs for reliable times.
  PlayBounds bounds{};
  /// The measured speed of each rank of the mesh, in any unit, for workloads that partition work by
  /// speed; empty = all ranks are equally fast.
  std::vector<double> speed_of_rank{};
  Trainer trainer = Trainer::none;

  bool operator==(const Request&) const = default;
};

/// Says what a workload runs on a given number of ranks. steps: steps with equal work. rows: the
/// cases of a micro-benchmark, with result rows. requests: inference requests that arrive during
/// the run.
enum class Kind : std::uint8_t { steps, rows, requests };

/// Says whether a workload with steps uses the sizes of Request::model. none: it does not.
/// shapes_all: the model determines the sizes of its programs. For a micro-benchmark, the function
/// BenchHooks::uses_model says if the model matters.
enum class ModelUse : std::uint8_t { none, shapes_all };

/// One workload, a row of the table of workloads. It consists of these functions, without state.
struct Workload {
  std::string_view name;
  std::string_view description;
  std::span<const OptionSpec> options;
  mesh::AxisSet axes;  ///< axes that it may use; the others have extent 1
  /// Returns the mesh of `ranks` ranks that is used if the user names none.
  mesh::Request (*natural_mesh)(int ranks);
  /// Returns numbers that axes of the mesh must divide, such as the number of heads for tp.
  std::vector<mesh::Constraint> (*limits)(const Request& base, Scaling scaling);
  /// Returns the request for `mesh`, made from the request for the base mesh (all axes 1). For a
  /// training workload the function fills in batch, microbatch and microbatches. Under weak scaling
  /// the batch then grows with dp and ep, the number of experts with ep, heads, FFN width and
  /// vocabulary with tp, the sequence with cp, and the layers with pp. Throws base::UsageError,
  /// with the numbers, if the batch cannot be divided or options do not fit the mesh.
  Request (*scale)(const Request& base, const mesh::Shape& mesh, Scaling scaling);
  /// Builds the programs of all ranks. Throws base::UsageError for options that exclude each other
  /// or do not fit the mesh.
  program::ProgramSet (*build)(const Request& request) = nullptr;
  /// Returns a small version of the request for verification. It has the same mesh, code and
  /// schedule and, except for sizes, nearly the same options. For a training workload, the bucket
  /// size is chosen so that the number of buckets stays about the same, but at least two. The
  /// twin's programs keep their results (observables).
  Request (*twin)(const Request& request) = nullptr;
  /// Returns the request with which a single rank computes, in f64, the same outputs, gradients and
  /// weights as the whole mesh of `twin`.
  Request (*reference)(const Request& twin) = nullptr;
  /// Returns the work of all ranks per step, in the unit of `throughput_unit`: tokens, multiplied
  /// by Request::growth, or pixels.
  double (*work_per_step)(const Request& request) = nullptr;
  std::string_view throughput_unit{};
  Kind kind = Kind::steps;
  /// The functions of a workload with rows or requests instead of steps. In such a workload
  /// work_per_step is null; build, twin and reference are null, too, unless `twin` verifies it.
  BenchHooks bench{};
  /// For a workload with steps: its use of the model.
  ModelUse model_use = ModelUse::shapes_all;

  [[nodiscard]] bool is_bench() const { return kind != Kind::steps; }
  /// True for the workloads that train a transformer; all have the options of workloads/stack.
  [[nodiscard]] bool is_training() const {
    return kind == Kind::steps && model_use == ModelUse::shapes_all;
  }
};

}  // namespace isoscale::workloads
