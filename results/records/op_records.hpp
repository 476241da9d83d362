// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "program/outline.hpp"
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
/// stores how many it has. Each shape of matrix multiplication is stored once.
struct StoredOps {
  std::vector<std::uint32_t> outline_of_rank{};
  std::vector<StoredOutline> outlines{};
  std::vector<program::Wait> waits{};
  std::vector<program::OutlineTransfer> transfers{};
  std::vector<program::GemmShape> shapes{};
};

[[nodiscard]] StoredOps to_stored(const program::OutlineSet& set);
/// Rebuilds the outlines, without their mesh. Throws base::Error when they refer to streams, ops or
/// shapes that do not exist.
[[nodiscard]] program::OutlineSet to_outlines(StoredOps stored);

/// The trace of one rank and step. Rows of one timeline are adjacent.
struct StoredTrace {
  std::uint32_t timeline = 0, rank = 0;
  timeline::StepTrace trace{};  ///< StepTrace::rank is not used; see `rank`
};

[[nodiscard]] std::vector<StoredTrace> to_stored(const std::vector<timeline::Timeline>& timelines);
/// Rebuilds the timelines. Throws base::Error for a rank that does not exist.
[[nodiscard]] std::vector<timeline::Timeline> to_timelines(std::vector<StoredTrace> stored);

/// Returns the field for a member of StoredOp::op.
template <class... Members>
constexpr auto op_field(const char* name, std::string_view unit, std::string_view description,
                        Members... members) {
  return field(name, path(&StoredOp::op, members...), unit, description);
}

template <>
inline constexpr auto fields_of<StoredOutline> = std::tuple{
    lists(
        "op_begin", "ops of program i are rows op_begin[i] to op_begin[i+1] of the columns here",
        &StoredOutline::ops,
        op_field("kind", "1", "what the op is; index into `values`", &program::OutlineOp::kind),
        op_field("stream", "1", "stream of the op within its program", &program::OutlineOp::stream),
        op_field("phase", "1", "part of the step the op belongs to; index into `values`",
                 &program::OutlineOp::place, &program::Place::phase),
        op_field("layer", "1", "layer of the model, -1 for none", &program::OutlineOp::place,
                 &program::Place::layer),
        op_field("microbatch", "1", "microbatch of the step, -1 for none",
                 &program::OutlineOp::place, &program::Place::microbatch),
        op_field("flop", "FLOP", "2 m n k of a matrix multiplication, else 0",
                 &program::OutlineOp::flop),
        op_field("bytes", "B",
                 "communication: the size that algbw is defined on; else bytes read + written",
                 &program::OutlineOp::bytes),
        op_field("axes", "1",
                 "mesh axes of the op's group, one bit each: 1 tp, 2 cp, 4 ep, 8 dp, 16 pp",
                 &program::OutlineOp::axes),
        op_field("wait_count", "1", "how many of the wait_ rows are the op's",
                 &program::OutlineOp::wait_count),
        op_field("transfer_count", "1", "how many of the transfer_ rows are the op's",
                 &program::OutlineOp::transfer_count),
        field("gemm_shape", &StoredOp::gemm_shape, "1",
              "row of the gemm_ columns here, -1 for what is not a matrix multiplication", 6)),
    lists("stream_begin",
          "streams of program i are stream_names[stream_begin[i]:stream_begin[i+1]]",
          &StoredOutline::streams,
          field("stream_names", itself, "text", "names of all programs' streams"))};

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
inline constexpr auto fields_of<StoredOps> =
    std::tuple{field_per("ranks", "program_of_rank", &StoredOps::outline_of_rank, "1",
                         "which program each rank plays"),
               table("", &StoredOps::outlines, "ops", 0, "programs"),
               table("", &StoredOps::waits, "the ops' waits", 0, "waits"),
               table("", &StoredOps::transfers, "the ops' transfers", 0, "transfers"),
               table("", &StoredOps::shapes, "the ops' gemm shapes", 6, "shapes")};

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
          path(&StoredTrace::trace, &timeline::StepTrace::spans),
          field("span_op", &timeline::Span::op, "1", "op within the rank's program"),
          field("span_start", &timeline::Span::start, "ns", "when the op began, clock of rank 0"),
          field("span_end", &timeline::Span::end, "ns", "when the op ended, clock of rank 0"))};

}  // namespace isoscale::results
