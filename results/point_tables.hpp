// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/outline.hpp"
#include "results/run_data.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::results {

// The lists of a point as columns, their form in the file: outlines and traces, rows of
// micro-benchmarks, op sums, solo times, device series, and the algorithms that were chosen.

/// The ops of all outlines of a point, one outline after the other. Ops [op_begin[i],
/// op_begin[i+1]) and streams [stream_begin[i], stream_begin[i+1]) belong to outline i. Waits and
/// transfers are in the order of their ops; wait_count and transfer_count have their number for
/// each op. Each shape of matrix multiplication is in the gemm_ columns once.
struct OpTable {
  std::vector<std::uint32_t> outline_of_rank;
  std::vector<std::uint64_t> op_begin, stream_begin;
  std::vector<std::string> stream_names;

  std::vector<std::uint8_t> kind, stream, phase;
  std::vector<std::int32_t> layer, microbatch;
  std::vector<double> flop;
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint8_t> axes;
  std::vector<std::uint32_t> wait_count, transfer_count;

  std::vector<std::uint8_t> wait_stream;
  std::vector<std::uint32_t> wait_ops;
  std::vector<std::uint8_t> transfer_direction, transfer_axis;
  std::vector<std::int32_t> transfer_offset;
  std::vector<std::uint64_t> transfer_bytes;

  std::vector<std::int32_t> gemm_shape;  ///< for each op its row in the columns below; -1 for none
  std::vector<std::uint32_t> gemm_m, gemm_n, gemm_k, gemm_batch;
};

[[nodiscard]] OpTable to_table(const program::OutlineSet& set);
/// Rebuilds the outlines. Throws base::Error when the columns do not fit together or refer to rows
/// that do not exist.
[[nodiscard]] program::OutlineSet to_outlines(const OpTable& table, const mesh::Shape& mesh);

/// All step traces of a point, one row each; rows of one timeline are adjacent. Spans
/// [span_begin[row], span_begin[row+1]) belong to the row.
struct TraceTable {
  std::vector<std::uint32_t> timeline, rank, step;
  std::vector<std::int64_t> begin, end;
  std::vector<std::uint64_t> span_begin;

  std::vector<std::uint32_t> span_op;
  std::vector<std::int64_t> span_start, span_end;
};

[[nodiscard]] TraceTable to_table(const std::vector<timeline::Timeline>& timelines);
/// Rebuilds the timelines. Throws base::Error when the columns do not fit together.
[[nodiscard]] std::vector<timeline::Timeline> to_timelines(const TraceTable& table);

/// The rows of a micro-benchmark. Ranks [ranks_begin[i], ranks_begin[i+1]) belong to row i, and so
/// do its times and call times; the times are stored play after play.
struct RowTable {
  std::map<std::string, std::vector<std::string>> text{};  ///< by key; "" = absent
  std::map<std::string, std::vector<double>> number{};     ///< by key; NaN = absent
  std::vector<std::uint64_t> ranks_begin{};
  std::vector<std::int32_t> ranks{};
  std::vector<std::int64_t> calls{};
  std::vector<std::uint64_t> plays{}, time_begin{};
  std::vector<double> time{};
  std::vector<std::uint64_t> call_time_begin{};
  std::vector<double> call_time{};
  std::vector<std::uint8_t> status{};
  std::vector<std::string> reason{};
  std::vector<std::int64_t> wrong{};  ///< -1 = not checked
};

[[nodiscard]] RowTable to_table(const std::vector<RowData>& rows);
/// Rebuilds the rows of a point with this number of ranks. Throws base::Error when the columns do
/// not fit together.
[[nodiscard]] std::vector<RowData> to_rows(const RowTable& table, int ranks);

/// Returns an upper limit on the bytes of the columns, with a generous estimate for their
/// structure.
[[nodiscard]] std::uint64_t room_for(const RowTable& table);

/// One row per traced step; 2-D columns have a column per rank.
struct OpSumTable {
  std::vector<std::uint32_t> step;
  std::vector<std::vector<double>> gemm, other_compute, copies, communication;
};

/// The solo times of ranks. Ops [op_begin[i], op_begin[i+1]) belong to row i.
struct SoloTable {
  std::vector<std::int32_t> rank;
  std::vector<std::uint64_t> op_begin;
  std::vector<std::int64_t> time;
};

/// The samples of devices. Samples [sample_begin[i], sample_begin[i+1]) belong to row i.
struct SeriesTable {
  std::vector<std::int32_t> rank;
  std::vector<std::string> device, quantity, unit;
  std::vector<std::uint64_t> sample_begin;
  std::vector<double> time, value;
};

[[nodiscard]] OpSumTable to_table(const std::vector<OpSums>& sums);
[[nodiscard]] SoloTable to_table(const std::vector<SoloTimes>& times);
[[nodiscard]] SeriesTable to_table(const std::vector<DeviceSeries>& series);

/// These rebuild op sums, solo times and device series. They throw base::Error when the columns do
/// not fit together.
[[nodiscard]] std::vector<OpSums> to_op_sums(const OpSumTable& table);
[[nodiscard]] std::vector<SoloTimes> to_solo_times(const SoloTable& table);
[[nodiscard]] std::vector<DeviceSeries> to_device_series(const SeriesTable& table);

/// Returns an upper limit on the bytes of a point's op sums, solo times and device series.
[[nodiscard]] std::uint64_t room_for_observed(const PointData& point);

/// The algorithm choices, one row for each shape that was multiplied.
struct GemmTable {
  std::vector<std::string> shape, algorithm;
  std::vector<std::int64_t> workspace;
  std::vector<double> time;
  std::vector<std::int32_t> candidates;
  std::vector<std::string> arithmetic;  ///< empty before schema 1.7
};
[[nodiscard]] GemmTable to_table(const std::vector<GemmChoice>& choices);
/// Rebuilds the choices. Throws base::Error when the columns differ in length.
[[nodiscard]] std::vector<GemmChoice> to_choices(const GemmTable& table);

/// Returns all choices of a run, each shape once, by the first point that chose for it. Throws
/// base::UsageError that begins with `file` when there are none.
[[nodiscard]] std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file);

/// One row per communicator.
struct CommunicatorTable {
  std::vector<std::string> name;
  std::vector<std::int32_t> ranks;
  std::vector<double> creation, first_call;
};
[[nodiscard]] CommunicatorTable to_table(const std::vector<CommunicatorTime>& times);
/// Rebuilds the times. Throws base::Error when the columns differ in length.
[[nodiscard]] std::vector<CommunicatorTime> to_communicators(const CommunicatorTable& table);

}  // namespace isoscale::results
