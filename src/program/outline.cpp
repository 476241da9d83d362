// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/outline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "program/operands.hpp"

namespace isoscale::program {
namespace {

double flop_of(const Payload& payload) {
  const auto* gemm = std::get_if<Gemm>(&payload);
  if (gemm == nullptr) return 0;
  return 2.0 * gemm->m * gemm->n * gemm->k * gemm->batch;
}

/// Returns OutlineOp::bytes of a collective.
std::uint64_t collective_bytes(const RankProgram& program, const Collective& op, int group) {
  const std::uint64_t send = slice_bytes(program, op.send);
  const std::uint64_t receive = slice_bytes(program, op.receive);
  const auto members = static_cast<std::uint64_t>(group);
  switch (op.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      return send * members;
    case CollectiveKind::scatter:
      return receive * members;
    case CollectiveKind::barrier:
      return 0;
    default:
      return std::max(send, receive);
  }
}

std::uint32_t signature_of(const RankProgram& program, const Collective& op) {
  const BufferId buffer = op.send.buffer != no_buffer ? op.send.buffer : op.receive.buffer;
  const std::uint32_t type =
      buffer == no_buffer ? 0 : static_cast<std::uint32_t>(program.buffers[buffer].dtype);
  return 1 + type + 16 * static_cast<std::uint32_t>(op.reduction) +
         64 * static_cast<std::uint32_t>(op.root);
}

void add_exchange(const RankProgram& program, const Exchange& exchange, Outline& result,
                  OutlineOp& op) {
  std::array<std::uint64_t, 2> by_direction{};
  op.transfer_begin = static_cast<std::uint32_t>(result.transfers.size());
  op.transfer_count = static_cast<std::uint32_t>(exchange.transfers.size());
  for (const Transfer& transfer : exchange.transfers) {
    const std::uint64_t bytes = slice_bytes(program, transfer.slice);
    by_direction[static_cast<std::size_t>(transfer.direction)] += bytes;
    op.axes |= transfer.axis;
    result.transfers.push_back({.direction = transfer.direction,
                                .axis = transfer.axis,
                                .offset = transfer.offset,
                                .bytes = bytes});
  }
  op.bytes = std::max(by_direction[0], by_direction[1]);
}

}  // namespace

std::string to_string(const GemmShape& shape) {
  std::string text = fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
  return shape.batch > 1 ? text + fmt::format(", batch {}", shape.batch) : text;
}

Outline outline(const RankProgram& program, Section section, const mesh::Shape& mesh) {
  const Program& source = program.section(section);
  Outline result{.streams = program.streams, .ops = {}, .waits = source.waits, .transfers = {}};
  result.ops.reserve(source.ops.size());
  for (const Op& op : source.ops) {
    OutlineOp& out = result.ops.emplace_back(OutlineOp{.kind = kind_of(op.payload),
                                                       .stream = op.stream,
                                                       .place = op.place,
                                                       .flop = flop_of(op.payload),
                                                       .bytes = 0,
                                                       .axes = {},
                                                       .wait_begin = op.wait_begin,
                                                       .wait_count = op.wait_count});
    if (const auto* collective = std::get_if<Collective>(&op.payload)) {
      out.axes = collective->axes;
      out.bytes = collective_bytes(program, *collective, mesh::group_size(mesh, collective->axes));
      out.signature = signature_of(program, *collective);
      out.uneven = !collective->send_counts.empty();
    } else if (const auto* exchange = std::get_if<Exchange>(&op.payload)) {
      add_exchange(program, *exchange, result, out);
    } else {
      out.bytes = local_bytes(program, op.payload);
      if (const auto* gemm = std::get_if<Gemm>(&op.payload)) {
        out.gemm = {.m = gemm->m, .n = gemm->n, .k = gemm->k, .batch = gemm->batch};
      }
    }
  }
  return result;
}

OutlineSet outline(const ProgramSet& set, Section section) {
  OutlineSet result{.mesh = set.mesh, .outlines = {}, .outline_of_rank = set.program_of_rank};
  result.outlines.reserve(set.programs.size());
  for (const RankProgram& program : set.programs) {
    result.outlines.push_back(outline(program, section, set.mesh));
  }
  return result;
}

}  // namespace isoscale::program
