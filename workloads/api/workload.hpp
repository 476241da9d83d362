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
