// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/render/text_and_markdown.hpp"
#include "analysis/report.hpp"

/// Reports of inference: latency against throughput for points of workload infer, and rates of
/// requests for points of workload serve.
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
  bool on_frontier = false;  ///< see mark_frontier
  std::string failure{};     ///< why something of it is missing; "" when nothing is
};

/// Returns the entries of all points of workload infer, in the order measured. The frontiers are
/// marked: one for each model, type, prompt and output, with and without the output projection.
[[nodiscard]] std::vector<Inference> inferences_of(const RunReport& report);

/// Marks the entries that no other one dominates. A dominating entry has at most the time per token
/// and at least the tokens per second and rank, and is better in one of these. Entries without
/// times, and points that are not ok, are left out.
void mark_frontier(std::span<Inference* const> all);

/// Returns what a mesh has to process, as text: "tiny, f32, prompt 16, output 64"; escaped.
[[nodiscard]] std::string question_of(const Inference& at);

/// Returns one table for each text of question_of(), over batch sizes and meshes; entries on the
/// frontier are marked.
[[nodiscard]] std::vector<TitledTable> inference_tables(const RunReport& report);
/// Returns the tables of one point's parts (prefill, decode) by batch size, with the rates that
/// they reach.
[[nodiscard]] std::vector<TitledTable> infer_part_tables(const PointReport& point);

/// Appends the rows of `point` to its object's "rows".
void add_inferences_json(std::span<const Inference> all, const PointReport& point,
                         nlohmann::ordered_json& object);

/// Returns the tables of one point of workload serve: its request rates in ascending order, and the
/// replicas at the rate whose requests were kept.
[[nodiscard]] std::vector<TitledTable> serve_tables(const PointReport& point);
/// Explains the columns of serve_tables(); nothing for a run without rows of workload serve.
[[nodiscard]] std::vector<std::string> serve_key(const RunReport& report);

/// Returns the object of one row of workload serve. Rates have latency, ttft, tpot and queueing as
/// objects with median, p90, p99 and max, in seconds; undefined values are null.
[[nodiscard]] nlohmann::ordered_json serve_json(const results::RowData& row);

}  // namespace isoscale::analysis::render
