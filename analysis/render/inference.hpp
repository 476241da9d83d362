// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/render/document.hpp"
#include "analysis/report.hpp"

/// Reports on inference: latency against throughput for points of workload infer, and request rates
/// for points of workload serve.
namespace isoscale::analysis::render {

/// The two rows, prefill and decode, of one batch size on one mesh.
struct Inference {
  const PointReport* point = nullptr;         ///< not owned
  const results::RowData* prefill = nullptr;  ///< not owned; null where the row is missing
  const results::RowData* decode = nullptr;
  std::string dtype{};
  std::optional<double> batch{};   ///< samples that each replica processes at once
  std::optional<double> prompt{};  ///< tokens
  std::optional<double> output{};
  std::optional<double> replicas{};     ///< extent of dp
  std::optional<double> cache_bytes{};  ///< bytes of keys and values on one rank
  /// Seconds from the start of a batch to the first tokens of all its samples.
  std::optional<statistics::Estimate> ttft{};
  /// Seconds from one token of a sample to the next, in the middle of the output.
  std::optional<statistics::Estimate> tpot{};
  std::optional<double> tokens_per_second{};  ///< replicas x batch / tpot: decode, all replicas
  std::optional<double> tokens_per_second_per_rank{};
  bool on_frontier = false;  ///< no other entry dominates it
  std::string failure{};     ///< why a value is missing; "" if none is
};

/// Returns the entries of all points of workload infer, in the order measured, with their frontiers
/// marked. There is one frontier for each combination of model, type, prompt and output, with and
/// without the output projection.
[[nodiscard]] std::vector<Inference> inferences_of(const RunReport& report);

/// Returns the task on which meshes are compared, as text: "tiny, f32, prompt 16, output 64";
/// not escaped.
[[nodiscard]] std::string question_of(const Inference& at);

/// Returns one table for each task (see question_of()), with a row for each batch size and mesh;
/// entries on the frontier are marked.
[[nodiscard]] std::vector<DocumentTable> inference_tables(const RunReport& report);
/// Returns the tables of one point's parts (prefill, decode) by batch size, with the FLOP rates
/// that they reach.
[[nodiscard]] std::vector<DocumentTable> infer_part_tables(const PointReport& point);

/// Appends the entries of `all` that belong to `point` to "rows" of `object`, which is the JSON of
/// the point.
void add_inferences_json(std::span<const Inference> all, const PointReport& point,
                         nlohmann::ordered_json& object);

/// Returns the tables of one point of workload serve: its request rates in ascending order, and its
/// replicas at the rate for which the run file has single requests.
[[nodiscard]] std::vector<DocumentTable> serve_tables(const PointReport& point);
/// Returns sentences that explain the columns of serve_tables(); empty for a run without rows of
/// workload serve.
[[nodiscard]] std::vector<std::string> serve_key(const RunReport& report);

/// Returns the object of one row of workload serve. The object of a request rate has latency, ttft,
/// tpot and queueing as objects with median, p90, p99 and max, in seconds; undefined values are
/// null.
[[nodiscard]] nlohmann::ordered_json serve_json(const results::RowData& row);

}  // namespace isoscale::analysis::render
