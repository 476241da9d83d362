// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/require_tensor.hpp"

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "workloads/options.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {
namespace {

/// The divisors of `number` on both sides of `wanted`, for people.
std::string divisors_near(long long number, long long wanted) {
  long long below = wanted - 1, above = wanted + 1;
  while (number % below != 0) --below;  // 1 divides
  while (above < number && number % above != 0) ++above;
  if (above > number) return std::to_string(below);
  return fmt::format("{} and {}", below, above);
}

void require_consistent(const Request& scaled, const OptionReader& options) {
  const bool splits = options.is("sequence_parallel", "on"), ring = options.is("ring", "on");
  const bool gathers = options.is("tp_output", "gather");
  const long long chunks = options.integer("chunks");
  if (splits && gathers) {
    throw base::UsageError(
        "sequence_parallel=on excludes tp_output=gather, whose outputs are whole on every rank; "
        "use tp_output=reduce, or sequence_parallel=off");
  }
  if (chunks > 1 && gathers) {
    throw base::UsageError(
        fmt::format("chunks={} excludes tp_output=gather, which has no sum over tp to cut; use "
                    "tp_output=reduce, or chunks=1",
                    chunks));
  }
  if (ring && !splits) {
    throw base::UsageError(
        "ring=on needs sequence_parallel=on: what goes round the ring is a rank's part of the "
        "rows; use both, or ring=off");
  }
  if (ring && chunks > 1) {
    throw base::UsageError(
        fmt::format("chunks={} excludes ring=on, which cuts the rows into tp parts itself; use "
                    "chunks=1, or ring=off",
                    chunks));
  }
  if (types_of(scaled.precision).casts_operands() && (chunks > 1 || ring)) {
    throw base::UsageError(fmt::format(
        "{} excludes --dtype fp8, which casts a whole tensor with one scale before its GEMM; use "
        "{}, or --dtype bf16",
        ring ? "ring=on" : fmt::format("chunks={}", chunks), ring ? "ring=off" : "chunks=1"));
  }
}

}  // namespace

void require_tensor(const Request& scaled) {
  const OptionReader options{option_table(), scaled.options};
  require_consistent(scaled, options);
  const mesh::Shape& mesh = scaled.mesh;
  const long long sequence = scaled.model.sequence;
  if (sequence % mesh.cp != 0) {
    throw base::UsageError(
        fmt::format("cp={} does not divide the sequence of {}; the nearest cp that do are {}",
                    mesh.cp, sequence, divisors_near(sequence, mesh.cp)));
  }
  if (mesh.tp == 1) return;
  const long long local = sequence / mesh.cp, chunks = options.integer("chunks");
  if (!options.is("sequence_parallel", "on")) {
    const long long rows = local * options.integer("microbatch");
    if (rows % chunks == 0) return;
    throw base::UsageError(fmt::format(
        "chunks={} does not divide the {} rows (sequence x microbatch) of a rank; the nearest "
        "chunks that do are {}",
        chunks, rows, divisors_near(rows, chunks)));
  }
  if (local % mesh.tp != 0) {
    throw base::UsageError(fmt::format(
        "sequence_parallel=on: tp={} does not divide the {} positions that a rank has of the "
        "sequence of {} (cp={}); the nearest tp that do are {}",
        mesh.tp, local, sequence, mesh.cp, divisors_near(local, mesh.tp)));
  }
  const long long part = local / mesh.tp;
  if (part % chunks == 0) return;
  throw base::UsageError(
      fmt::format("chunks={} does not divide the {} positions that sequence_parallel=on leaves a "
                  "rank of tp={}; "
                  "the nearest chunks that do are {}",
                  chunks, part, mesh.tp, divisors_near(part, chunks)));
}

}  // namespace isoscale::workloads::stack
