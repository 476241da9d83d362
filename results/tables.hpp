// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"

/// Outlines and traces as columns, the form that the file has them in.
namespace isoscale::results {

/// The ops of all outlines of a point, one outline after the other. Ops [op_begin[i],
/// op_begin[i+1]) and streams [stream_begin[i], stream_begin[i+1]) are those of outline i. Waits
/// and transfers follow each other in op order, as many per op as it counts. The shapes of matrix
/// multiplications stand once each in the gemm_ columns.
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

  std::vector<std::int32_t> gemm_shape;  ///< of each op, into the columns below; -1 for none
  std::vector<std::uint32_t> gemm_m, gemm_n, gemm_k, gemm_batch;
};

[[nodiscard]] OpTable to_table(const program::OutlineSet& set);
/// Throws base::Error when the columns do not fit together or point outside each other.
[[nodiscard]] program::OutlineSet to_outlines(const OpTable& table, const mesh::Shape& mesh);

/// All step traces of a point, one row each; rows of one timeline follow each other. Spans
/// [span_begin[row], span_begin[row+1]) are those of the row.
struct TraceTable {
  std::vector<std::uint32_t> timeline, rank, step;
  std::vector<std::int64_t> begin, end;
  std::vector<std::uint64_t> span_begin;

  std::vector<std::uint32_t> span_op;
  std::vector<std::int64_t> span_start, span_end;
};

[[nodiscard]] TraceTable to_table(const std::vector<timeline::Timeline>& timelines);
/// Throws base::Error when the columns do not fit together.
[[nodiscard]] std::vector<timeline::Timeline> to_timelines(const TraceTable& table);

}  // namespace isoscale::results
