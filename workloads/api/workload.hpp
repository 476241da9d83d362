// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"
#include "mesh/request.hpp"
#include "program/program.hpp"
#include "workloads/api/bench.hpp"
#include "workloads/api/model.hpp"
#include "workloads/api/options.hpp"

namespace isoscale::workloads {

/// The type that a run computes in. tf32 stores f32.
enum class Precision : std::uint8_t { f64, f32, tf32, f16, bf16, fp8 };
[[nodiscard]] std::string_view name(Precision precision);
/// Throws base::UsageError with the names that exist.
[[nodiscard]] Precision parse_precision(std::string_view text);

enum class Scaling : std::uint8_t { strong, weak };
[[nodiscard]] std::string_view name(Scaling scaling);

/// Says whether a program keeps what it computes until the end of a step, for verification to read,
/// or frees it as soon as it is used.
enum class Keep : std::uint8_t { nothing, observables };

/// Everything a program is a function of. `options` are complete: batch, microbatch and
/// microbatches are all set when a point has been planned.
struct Request {
  Model model{};
  mesh::Shape mesh{};
  Precision precision = Precision::f32;
  Options options{};
  std::uint64_t seed = 1;
  Keep keep = Keep::nothing;
  /// Under weak scaling, how many times the work per token has grown over the base mesh.
  double growth = 1;
  /// The node of each rank, for micro-benchmarks, as far as known; empty = all on one.
  std::vector<int> node_of_rank{};
  /// Pairs of ranks (the lower first), for micro-benchmarks, that did not answer each other, and
  /// are left in peace.
  std::vector<std::pair<int, int>> silent_pairs{};
  /// The bounds of a micro-benchmark's plays: those of the device.
  PlayBounds bounds{};
  /// The measured speed of each rank of the mesh, in any one unit, for workloads that deal work out
  /// by speed; empty = all alike.
  std::vector<double> speed_of_rank{};

  bool operator==(const Request&) const = default;
};

/// What a point of a workload plays and reports: steps that are all alike, the cases of a
/// micro-benchmark with a row for each, or requests that arrive while it plays.
enum class Kind : std::uint8_t { steps, rows, requests };

/// Says whether a workload is shaped after Request::model. A micro-benchmark says so by its hooks.
enum class ModelUse : std::uint8_t { none, shapes_all };

/// One row of the registry: a workload is these functions, and no state.
struct Workload {
  std::string_view name;
  std::string_view description;
  std::span<const OptionSpec> options;
  mesh::AxisSet axes;  ///< the axes it may use; the others stay 1
  /// The mesh of `ranks` ranks that the workload is about when the user names none.
  mesh::Request (*natural_mesh)(int ranks);
  /// The numbers that the mesh must divide.
  std::vector<mesh::Constraint> (*limits)(const Request& base, Scaling scaling);
  /// The request of a point at `mesh`, from the request at the base mesh (all axes 1): fills in
  /// batch, microbatch and microbatches; under weak scaling grows batch with dp, heads and FFN
  /// width with tp, layers with pp. Throws base::UsageError with the numbers when the batch does
  /// not divide.
  Request (*scale)(const Request& base, const mesh::Shape& mesh, Scaling scaling);
  /// The programs of all ranks. Throws base::UsageError when options exclude each other or the
  /// mesh.
  program::ProgramSet (*build)(const Request& request);
  /// A small relative for verification: same mesh, code, schedule and options, sizes and bucket
  /// thresholds scaled down together; its programs keep what they compute (observables).
  Request (*twin)(const Request& request);
  /// The request that one rank alone answers with the same outputs, gradients and weights as the
  /// whole mesh of `twin`, in f64.
  Request (*reference)(const Request& twin);
  /// Work per step over all ranks, in what `throughput_unit` counts: tokens, times the growth of
  /// the work per token under weak scaling.
  double (*work_per_step)(const Request& request);
  std::string_view throughput_unit;
  Kind kind = Kind::steps;
  /// The hooks of a workload that has rows instead of steps: work_per_step is null then, and so are
  /// build, twin and reference unless it is verified by its twin; a micro-benchmark has no limits.
  BenchHooks bench{};
  /// The use of the model by a workload with steps.
  ModelUse model_use = ModelUse::shapes_all;

  [[nodiscard]] bool is_bench() const { return kind != Kind::steps; }
};

[[nodiscard]] std::span<const Workload> registry();
/// Throws base::UsageError with the nearest name.
[[nodiscard]] const Workload& find_workload(std::string_view name);

}  // namespace isoscale::workloads
