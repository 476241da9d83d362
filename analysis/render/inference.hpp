// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// Reports of inference: points of workload infer, latency against throughput, and points of
/// workload serve, rates of requests.
namespace isoscale::analysis {

/// One batch size on one mesh; its two rows together.
struct Inference {
  const PointReport* point = nullptr;         ///< not owned
  const results::RowData* prefill = nullptr;  ///< not owned; null where the row is missing
  const results::RowData* decode = nullptr;
  std::string dtype{};
  std::optional<double> batch{};   ///< samples that each replica answers at once
  std::optional<double> prompt{};  ///< tokens
  std::optional<double> output{};
  std::optional<double> replicas{};     ///< dp
  std::optional<double> cache_bytes{};  ///< keys and values on one rank
  /// Seconds from the beginning of a batch to the first tokens of all its samples.
  std::optional<statistics::Estimate> ttft{};
  /// Seconds from one token of a sample to its next, in the middle of the output.
  std::optional<statistics::Estimate> tpot{};
  std::optional<double> tokens_per_second{};  ///< replicas x batch / tpot: decode, all replicas
  std::optional<double> tokens_per_second_per_rank{};
  bool on_frontier = false;  ///< see mark_frontier
  std::string failure{};     ///< why something of it is missing; "" when nothing is
};

/// Gives those of all points of workload infer, in the order measured, with frontiers marked: one
/// for each model, type, prompt and output, with and without the output projection.
[[nodiscard]] std::vector<Inference> inferences_of(const RunReport& report);

/// Marks those that no other dominates, which would be at least as quick per token, yield at least
/// as many tokens per second and rank, and be better in one of the two. What has no times, and
/// points that are not ok, are left out.
void mark_frontier(std::span<Inference* const> all);

/// The question that is asked of a mesh, for people: "tiny, f32, prompt 16, output 64"; escaped.
[[nodiscard]] std::string question_of(const Inference& at);

/// One table for each question, over batch sizes and meshes; those on the frontier are marked.
[[nodiscard]] std::vector<TitledTable> inference_tables(const RunReport& report);
/// The parts of one point by batch size, with the rates they reach.
[[nodiscard]] std::vector<TitledTable> infer_part_tables(const PointReport& point);

/// Appends the rows of `point` to its object's "rows".
void add_inferences_json(std::span<const Inference> all, const PointReport& point,
                         nlohmann::ordered_json& object);
/// Cells of one row; what both rows make together stands beside the decode. `row` may be null.
[[nodiscard]] std::vector<CsvCell> inference_cells(std::span<const Inference> all,
                                                   const results::RowData* row);

/// The rates of one point of workload serve in ascending order, and the replicas at the rate whose
/// requests were kept.
[[nodiscard]] std::vector<TitledTable> serve_tables(const PointReport& point);
/// Says what the columns mean; "" for a run without such rows.
[[nodiscard]] std::string serve_key(const RunReport& report);

/// The object of one row of the workload. Rates have latency, ttft, tpot and queueing as objects
/// with median, p90, p99 and max, seconds; what is undefined is null.
[[nodiscard]] nlohmann::ordered_json serve_json(const results::RowData& row);
/// Cells of any row; `row` may be null.
[[nodiscard]] std::vector<CsvCell> serve_cells(const results::RowData* row);

}  // namespace isoscale::analysis
