// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "program/outline.hpp"
#include "results/records/fields.hpp"
#include "results/records/layout.hpp"
#include "timeline/timeline.hpp"

/// The ops and traces of a point as records of the run file.
namespace isoscale::results {

struct StoredOp {
  program::OutlineOp op{};
  std::int32_t gemm_shape = -1;  ///< index into StoredOps::shapes; -1 for none
};

struct StoredOutline {
  std::vector<StoredOp> ops{};
  std::vector<std::string> streams{};
};

/// The ops of all outlines of a point. Waits and transfers are in the order of their ops; each op
/// has the numbers of its waits and transfers. Each shape of matrix multiplication is stored once.
struct StoredOps {
  std::vector<std::uint32_t> outline_of_rank{};
  std::vector<StoredOutline> outlines{};
  std::vector<program::Wait> waits{};
  std::vector<program::OutlineTransfer> transfers{};
  std::vector<program::GemmShape> shapes{};
};

[[nodiscard]] StoredOps to_stored(const program::OutlineSet& set);
/// Rebuilds the outlines. Throws base::Error when they refer to streams, ops or shapes that do not
/// exist.
[[nodiscard]] program::OutlineSet to_outlines(StoredOps stored, const mesh::Shape& mesh);

/// The trace of one rank and step. Rows of one timeline are adjacent.
struct StoredTrace {
  std::uint32_t timeline = 0, rank = 0;
  timeline::StepTrace trace{};  ///< its own rank is not set
};

[[nodiscard]] std::vector<StoredTrace> to_stored(const std::vector<timeline::Timeline>& timelines);
/// Rebuilds the timelines. Throws base::Error for a rank that does not exist.
[[nodiscard]] std::vector<timeline::Timeline> to_timelines(std::vector<StoredTrace> stored);

/// Returns a field with an element for each op.
template <class... Members>
constexpr auto each_op(const char* name, std::string_view unit, std::string_view description,
                       Members... members) {
  return each(name, &StoredOutline::ops, path(&StoredOp::op, members...), unit, description);
}

template <>
inline constexpr auto fields_of<StoredOutline> = std::tuple{
    lists(
        "op_begin", "ops of program i are rows op_begin[i] to op_begin[i+1] of the columns here",
        each_op("kind", "1", "what the op is; index into `values`", &program::OutlineOp::kind),
        each_op("stream", "1", "stream of the op within its program", &program::OutlineOp::stream),
        each_op("phase", "1", "part of the step the op belongs to; index into `values`",
                &program::OutlineOp::place, &program::Place::phase),
        each_op("layer", "1", "layer of the model, -1 for none", &program::OutlineOp::place,
                &program::Place::layer),
        each_op("microbatch", "1", "microbatch of the step, -1 for none",
                &program::OutlineOp::place, &program::Place::microbatch),
        each_op("flop", "FLOP", "2 m n k of a matrix multiplication, else 0",
                &program::OutlineOp::flop),
        each_op("bytes", "B",
                "communication: the size that algbw is defined on; else bytes read + written",
                &program::OutlineOp::bytes),
        each_op("axes", "1",
                "mesh axes of the op's group, one bit each: 1 tp, 2 cp, 4 ep, 8 dp, 16 pp",
                &program::OutlineOp::axes),
        each_op("wait_count", "1", "how many of the wait_ rows are the op's",
                &program::OutlineOp::wait_count),
        each_op("transfer_count", "1", "how many of the transfer_ rows are the op's",
                &program::OutlineOp::transfer_count),
        each("gemm_shape", &StoredOutline::ops, &StoredOp::gemm_shape, "1",
             "row of the gemm_ columns here, -1 for what is not a matrix multiplication", 6)),
    lists("stream_begin",
          "streams of program i are stream_names[stream_begin[i]:stream_begin[i+1]]",
          each("stream_names", &StoredOutline::streams, itself, "text",
               "names of all programs' streams"))};

template <>
inline constexpr auto fields_of<program::Wait> =
    std::tuple{field("wait_stream", &program::Wait::stream, "1", "stream that is waited for"),
               field("wait_ops", &program::Wait::count, "1",
                     "how many ops of that stream must have finished, counted from its first")};

template <>
inline constexpr auto fields_of<program::OutlineTransfer> = std::tuple{
    field("transfer_direction", &program::OutlineTransfer::direction, "1",
          "send or receive; index into `values`"),
    field("transfer_axis", &program::OutlineTransfer::axis, "1",
          "mesh axis along which the peer is; index into `values`"),
    field("transfer_offset", &program::OutlineTransfer::offset, "1",
          "how far along the axis the peer is, wrapping around"),
    field("transfer_bytes", &program::OutlineTransfer::bytes, "B", "size of the message")};

template <>
inline constexpr auto fields_of<program::GemmShape> = std::tuple{
    field("gemm_m", &program::GemmShape::m, "1", "rows of the product"),
    field("gemm_n", &program::GemmShape::n, "1", "columns of the product"),
    field("gemm_k", &program::GemmShape::k, "1", "extent that is summed over"),
    field("gemm_batch", &program::GemmShape::batch, "1", "multiplications that the op makes")};

template <>
inline constexpr auto fields_of<StoredOps> = std::tuple{
    field("program_of_rank", &StoredOps::outline_of_rank, "1", "which program each rank plays"),
    table("", &StoredOps::outlines, "ops"), table("", &StoredOps::waits, "the ops' waits"),
    table("", &StoredOps::transfers, "the ops' transfers"),
    table("", &StoredOps::shapes, "the ops' gemm shapes", 6)};

template <>
inline constexpr auto fields_of<StoredTrace> = std::tuple{
    field("timeline", &StoredTrace::timeline, "1", "rows of one traced step share this number"),
    field("rank", &StoredTrace::rank, "1", "rank of the point"),
    field("step", path(&StoredTrace::trace, &timeline::StepTrace::step), "1", "row of step_times"),
    field("begin", path(&StoredTrace::trace, &timeline::StepTrace::begin), "ns",
          "when the rank began the step, clock of rank 0"),
    field("end", path(&StoredTrace::trace, &timeline::StepTrace::end), "ns",
          "when the rank's streams had drained, clock of rank 0"),
    lists("span_begin",
          "spans of row i are rows span_begin[i] to span_begin[i+1] of the span_ columns",
          each("span_op", path(&StoredTrace::trace, &timeline::StepTrace::spans),
               &timeline::Span::op, "1", "op within the rank's program"),
          each("span_start", path(&StoredTrace::trace, &timeline::StepTrace::spans),
               &timeline::Span::start, "ns", "when the op began, clock of rank 0"),
          each("span_end", path(&StoredTrace::trace, &timeline::StepTrace::spans),
               &timeline::Span::end, "ns", "when the op ended, clock of rank 0"))};

}  // namespace isoscale::results
