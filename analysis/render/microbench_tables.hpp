// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/document_and_metrics.hpp"
#include "analysis/report.hpp"

/// Describes the figures of micro-benchmarks, of inference and of serving, once for all reports,
/// and builds their tables.
namespace isoscale::analysis::render {

/// Returns the metrics that tables and JSON show for rows of all known kinds. A metric without a
/// function for its value is read from the row, where it is stored under the metric's key.
[[nodiscard]] Metrics<microbench::RowReport> row_metrics();
template <>
[[nodiscard]] Value stored_value(const microbench::RowReport& row, std::string_view key, Unit unit);

/// Returns the metrics of a GEMM that overlaps with a collective.
[[nodiscard]] Metrics<microbench::OverlapReport> overlap_metrics();

/// Returns the metrics of the pairs of ranks of one class of link.
[[nodiscard]] Metrics<microbench::ClassReport> class_metrics();

/// Returns the interval of a row's time: "±0.4%", "n=2: too few" for a time from few repetitions,
/// or "—" if there is no interval for another reason.
[[nodiscard]] std::string interval_cell(const results::RowData* row,
                                        const std::optional<statistics::Estimate>& time);

/// Returns the text of a number, "—" where it is absent.
[[nodiscard]] std::string figure(const std::optional<double>& value, Unit unit);

/// Returns "failed: the reason" for a row that is not ok; "" for an ok row. Not escaped.
[[nodiscard]] std::string row_excuse(const microbench::RowReport& row);

/// Returns the title of a micro-benchmark point: "collectives, f32, 4 ranks, dp=4, packed".
[[nodiscard]] std::string bench_title(const PointReport& point);
/// Returns the tables of a point by kind, in this order: GEMMs, collectives, pairs of ranks,
/// memory, overlap, inference, serving.
[[nodiscard]] std::vector<DocumentTable> bench_tables(const PointReport& point);

/// Returns the tables of a calibration: time over size, growth of latency with ranks, and highest
/// GEMM rates. The list is empty if nothing was fitted.
[[nodiscard]] std::vector<DocumentTable> calibration_tables(const RunReport& report);

/// Returns the rows of a point with this op; none for a point without rows.
[[nodiscard]] std::vector<const microbench::RowReport*> rows_of(const PointReport& point,
                                                                std::string_view op);
/// Returns a table of these rows with the metrics that `keys` names.
[[nodiscard]] DocumentTable row_table(const std::vector<const microbench::RowReport*>& rows,
                                      std::string title, std::string_view keys);

/// Returns the rows of a point that measured collectives.
[[nodiscard]] std::vector<const microbench::RowReport*> collective_rows(const PointReport& point);
/// Returns "all_reduce among 4 on tp, one group alone, ring"; not escaped. The rows of a point with
/// the same name differ only in size, type, reduction and root, and in being in place or not.
[[nodiscard]] std::string collective_name(const microbench::RowReport& row);

// The following reports on inference: latency against throughput for points of the workload infer,
// and request rates for points of the workload serve.

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
  std::optional<double> tokens_per_second{};  ///< replicas x batch / tpot, in decode
  std::optional<double> tokens_per_second_per_rank{};
  /// True if this entry has a time per token and a throughput per rank, and no other entry of the
  /// same task (see question_of()) dominates it. An entry dominates another if it is at least as
  /// good in both values and better in one.
  bool on_frontier = false;
  std::string failure{};  ///< why a row is not ok; "" if all are
};

[[nodiscard]] Metrics<Inference> inference_metrics();

/// Returns the entries of all points of the workload infer, in the order measured, with those on a
/// frontier marked. There is one frontier for each task (see question_of()).
[[nodiscard]] std::vector<Inference> inferences_of(const RunReport& report);

/// Returns the task for which meshes are compared (model, type, prompt, output, with or without the
/// output projection), as text: "tiny, f32, prompt 16, output 64"; not escaped.
[[nodiscard]] std::string question_of(const Inference& at);

/// Returns one table for each task (see question_of()), with a row for each batch size and mesh;
/// entries on the frontier are marked.
[[nodiscard]] std::vector<DocumentTable> inference_tables(const RunReport& report);
/// Returns the table of one point's parts (prefill, decode) by batch size, with the FLOP rates that
/// they reach.
[[nodiscard]] DocumentTable infer_part_table(const PointReport& point);

/// Appends the entries of `all` that belong to `point` to the list "rows" of `object`, the JSON
/// object of the point.
void add_inferences_json(std::span<const Inference> all, const PointReport& point,
                         nlohmann::ordered_json& object);

/// Returns the tables of one point of the workload serve: its request rates in ascending order, and
/// the use of its replicas at the one rate for which the run file has single requests.
[[nodiscard]] std::vector<DocumentTable> serve_tables(const PointReport& point);
/// Returns sentences that explain the columns of serve_tables(); empty for a run without rows of
/// the workload serve.
[[nodiscard]] std::vector<std::string> serve_key(const RunReport& report);

/// Returns the JSON object of one row of the workload serve. For a request rate, its latency, ttft,
/// tpot and queueing are objects with median, p90, p99 and max, in seconds; undefined values are
/// null.
[[nodiscard]] nlohmann::ordered_json serve_json(const results::RowData& row);

}  // namespace isoscale::analysis::render
